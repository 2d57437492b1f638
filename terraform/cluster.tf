# What the cluster side needs to know of this one, as files of a kustomization on top of the folder cluster.

locals {
  has_pods         = contains(var.providers_enabled, "kubernetes")
  is_own_namespace = var.cluster.watcher_namespace != "egress-proxies"

  cluster_subjects = merge(
    { for name in ["provision", "gc"] : name => {
      apiGroup  = "rbac.authorization.k8s.io"
      kind      = "User"
      name      = google_service_account.function[name].email
      namespace = null
    } },
    { watcher = {
      apiGroup  = null
      kind      = "ServiceAccount"
      name      = var.cluster.watcher_service_account
      namespace = var.cluster.watcher_namespace
    } },
  )

  # One binding per role and namespace; one per role where the installation is everywhere.
  cluster_roles = {
    for pair in setproduct(["watcher", "provision", "gc"], local.has_pods ? ["", "-pods"] : [""]) :
    "egress-proxies-${pair[0]}${pair[1]}" => pair[0]
  }
  cluster_bindings = concat(
    [{ role = "egress-proxies-cluster-identity", of = ["gc", "provision"], namespace = "*" }],
    [for pair in setproduct(sort(keys(local.cluster_roles)), var.proxy_namespaces) : {
      role      = pair[0]
      of        = [local.cluster_roles[pair[0]]]
      namespace = pair[1]
    }],
  )

  cluster_binding_manifests = [for binding in local.cluster_bindings : {
    apiVersion = "rbac.authorization.k8s.io/v1"
    kind       = binding.namespace == "*" ? "ClusterRoleBinding" : "RoleBinding"
    metadata = { for key, value in {
      # Bindings of the whole cluster are shared ground: two installations must not take each other's.
      name      = binding.namespace == "*" ? "${local.prefix}${binding.role}" : binding.role
      namespace = binding.namespace == "*" ? null : binding.namespace
    } : key => value if value != null }
    roleRef  = { apiGroup = "rbac.authorization.k8s.io", kind = "ClusterRole", name = binding.role }
    subjects = [for of in binding.of : { for key, value in local.cluster_subjects[of] : key => value if value != null }]
  }]

  watcher_environment = merge(local.common, local.namespaces, local.changes, local.machines)

  cluster_files = {
    "kustomization.yaml" = yamlencode({
      apiVersion = "kustomize.config.k8s.io/v1beta1"
      kind       = "Kustomization"
      resources  = [var.cluster.kustomize_base, "bindings.yaml", "environment.yaml"]
      components = local.has_pods ? ["${var.cluster.kustomize_base}/kubernetes-provider"] : []
      # A second installation in the cluster has its watcher in another namespace.
      patches = concat(
        [for kind in(local.is_own_namespace ? ["ServiceAccount", "Deployment", "PodDisruptionBudget", "NetworkPolicy"] : []) : {
          target = { kind = kind, name = "watcher" }
          patch  = yamlencode([{ op = "replace", path = "/metadata/namespace", value = var.cluster.watcher_namespace }])
        }],
        [for name in(local.is_own_namespace ? ["egress-proxies"] : []) : {
          target = { kind = "Namespace", name = name }
          patch  = yamlencode([{ op = "replace", path = "/metadata/name", value = var.cluster.watcher_namespace }])
        }],
      )
      images = [merge(
        { name = "watcher", newName = split("@", var.cluster.watcher_image)[0] },
        strcontains(var.cluster.watcher_image, "@") ? { digest = split("@", var.cluster.watcher_image)[1] } : {},
      )]
    })
    "bindings.yaml" = join("---\n", [for manifest in local.cluster_binding_manifests : yamlencode(manifest)])
    "environment.yaml" = yamlencode({
      apiVersion = "v1"
      kind       = "ConfigMap"
      metadata   = { name = "watcher", namespace = var.cluster.watcher_namespace }
      data       = local.watcher_environment
    })
  }
}
