# The whole module against a mocked provider. The folder dist must hold one zip per function.

mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "123456789012" }
  }
  mock_resource "google_service_account" {
    defaults = {
      id     = "projects/my-project/serviceAccounts/someone@my-project.iam.gserviceaccount.com"
      email  = "someone@my-project.iam.gserviceaccount.com"
      member = "serviceAccount:someone@my-project.iam.gserviceaccount.com"
    }
  }
  mock_resource "google_project_iam_custom_role" {
    defaults = { name = "projects/my-project/roles/some" }
  }
  mock_resource "google_compute_address" {
    defaults = { address = "203.0.113.10" }
  }
}

variables {
  project_id       = "my-project"
  region           = "europe-west1"
  installation_id  = "prod"
  proxy_namespaces = ["crawlers", "more-crawlers"]
  cluster          = { endpoint = "https://gke-abc.europe-west1.gke.goog" }
  network          = { name = "default", health_range = "10.20.0.0/26" }
  subnetworks      = [{ region = "europe-west1", name = "default" }]
  crawler_ranges   = ["198.51.100.0/24", "2001:db8::/32"]
  crawlers         = ["serviceAccount:crawler@my-project.iam.gserviceaccount.com"]
  operators        = ["group:operators@example.com"]
  dist_dir         = "dist"
}

run "plan" {
  command = plan

  assert {
    condition     = alltrue([for key, job in google_cloud_scheduler_job.main : job.schedule == "* * * * *"]) && toset(keys(google_cloud_scheduler_job.main)) == toset(["health", "gc"])
    error_message = "health and gc run once a minute."
  }

  assert {
    condition     = google_pubsub_subscription.main["changes"].enable_message_ordering
    error_message = "Changes of one Proxy are delivered in their order."
  }

  assert {
    condition = alltrue([
      for key, subscription in google_pubsub_subscription.main :
      subscription.retry_policy[0].minimum_backoff == "5s" &&
      subscription.retry_policy[0].maximum_backoff == "60s" &&
      subscription.ack_deadline_seconds == 600 &&
      subscription.expiration_policy[0].ttl == "" &&
      length(subscription.push_config[0].oidc_token) == 1 &&
      length(subscription.dead_letter_policy) == 1
    ])
    error_message = "Every push is authenticated, retried with a pause, and ends as a dead letter; no subscription expires."
  }

  assert {
    condition = alltrue([
      for key, subscription in google_pubsub_subscription.dead : subscription.expiration_policy[0].ttl == ""
    ]) && toset(keys(google_pubsub_subscription.dead)) == toset(keys(google_pubsub_subscription.main))
    error_message = "Dead letters of every topic are kept in a subscription of their own."
  }

  assert {
    condition     = google_firestore_database.main["main"].name != google_firestore_database.main["credentials"].name
    error_message = "Credentials have a database of their own."
  }

  assert {
    condition = toset([for key, user in google_project_iam_member.database : key if endswith(key, "-credentials")]) == toset([
      "provision-credentials", "health-credentials", "discovery-credentials",
    ])
    error_message = "Nobody but provision, health and discovery sees credentials."
  }

  assert {
    condition = alltrue([
      for key, rule in google_compute_firewall.deny_private :
      rule.direction == "EGRESS" && rule.target_tags == toset(["prod-proxy"]) && length(rule.deny) == 1
      ]) && setunion([for key, rule in google_compute_firewall.deny_private : rule.destination_ranges]...) == toset([
      "10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7",
    ])
    error_message = "No private range is within reach of a proxy."
  }

  assert {
    condition     = length(google_compute_firewall.allow_private_targets) == 0
    error_message = "Nothing inside the network is a target unless it is named."
  }

  assert {
    condition = max([for key, rule in google_compute_firewall.allow_proxy : rule.priority]...) < min([
      for key, rule in google_compute_firewall.deny_proxy : rule.priority
    ]...)
    error_message = "Crawlers are let in before everybody else is kept out."
  }

  assert {
    condition     = !contains(google_project_iam_custom_role.machines["gc"].permissions, "compute.instances.create")
    error_message = "gc creates nothing."
  }

  assert {
    condition = length(setsubtract([
      "compute.disks.delete", "compute.disks.get", "compute.instances.delete", "compute.instances.get",
    ], google_project_iam_custom_role.machines["gc"].permissions)) == 0 && contains(google_project_iam_custom_role.fleet.permissions, "compute.disks.list")
    error_message = "gc may see and delete orphans and the boot disks that machines left behind."
  }
}

run "two_installations_share_no_name" {
  command = plan

  variables {
    installation_id = "prod2"
  }

  assert {
    condition = alltrue(concat(
      [for account in google_service_account.function : startswith(account.account_id, "prod2-")],
      [for topic in google_pubsub_topic.main : startswith(topic.name, "prod2-")],
      [for database in google_firestore_database.main : startswith(database.name, "prod2-")],
      [for job in google_cloud_scheduler_job.main : startswith(job.name, "prod2-")],
      [startswith(google_compute_subnetwork.health.name, "prod2-")],
      [endswith(google_project_iam_custom_role.cluster.role_id, "_prod2")],
    ))
    error_message = "Everything that is created carries the installation's id."
  }
}

run "apply" {
  command = apply

  assert {
    condition     = output.topics == { changes = "prod-proxy-changes", probes = "prod-proxy-probes" }
    error_message = "The topics are named after the installation."
  }

  assert {
    condition     = output.watcher_environment.PROXY_NAMESPACES == "crawlers,more-crawlers"
    error_message = "The watcher looks at the installation's namespaces."
  }

  assert {
    condition     = google_pubsub_subscription.main["probes"].push_config[0].push_endpoint == "${module.function["health"].uri}/probes"
    error_message = "Probe requests go to health."
  }

  assert {
    condition = alltrue([
      for key, subscription in google_pubsub_subscription.main :
      startswith(subscription.push_config[0].push_endpoint, subscription.push_config[0].oidc_token[0].audience)
    ])
    error_message = "The audience of a push is the function that it goes to."
  }

  assert {
    condition = alltrue([
      for key, rule in google_compute_firewall.allow_proxy :
      length(setintersection(rule.source_ranges, ["0.0.0.0/0", "::/0"])) == 0 && rule.target_tags == toset(["prod-proxy"])
    ])
    error_message = "Proxies are not open to everybody."
  }
}

# Row 84: judged by its plan, which must be empty.
run "again" {
  command = plan

  assert {
    condition     = module.function["health"].uri != ""
    error_message = "What was applied is known."
  }
}

run "cluster_side_of_some_namespaces" {
  command = apply

  assert {
    condition = toset([
      for manifest in split("---\n", output.cluster_files["bindings.yaml"]) :
      "${yamldecode(manifest).kind} ${yamldecode(manifest).roleRef.name} ${try(yamldecode(manifest).metadata.namespace, "")}"
      ]) == toset([
      "ClusterRoleBinding egress-proxies-cluster-identity ",
      "RoleBinding egress-proxies-gc crawlers",
      "RoleBinding egress-proxies-gc more-crawlers",
      "RoleBinding egress-proxies-provision crawlers",
      "RoleBinding egress-proxies-provision more-crawlers",
      "RoleBinding egress-proxies-watcher crawlers",
      "RoleBinding egress-proxies-watcher more-crawlers",
    ])
    error_message = "Each role is bound in each namespace of the installation, and in no other."
  }

  assert {
    condition = alltrue([
      for manifest in split("---\n", output.cluster_files["bindings.yaml"]) :
      jsonencode(yamldecode(manifest).subjects) == (
        endswith(yamldecode(manifest).roleRef.name, "-watcher")
        ? jsonencode([{ kind = "ServiceAccount", name = "watcher", namespace = "egress-proxies" }])
        : jsonencode([
          # gc and provision both tell the cluster by its identity.
          for n in range(endswith(yamldecode(manifest).roleRef.name, "-cluster-identity") ? 2 : 1) :
          { apiGroup = "rbac.authorization.k8s.io", kind = "User", name = "someone@my-project.iam.gserviceaccount.com" }
        ])
      )
    ])
    error_message = "Functions are bound by the email of their service account, the watcher by its Kubernetes one."
  }

  assert {
    condition     = jsonencode(yamldecode(output.cluster_files["environment.yaml"]).data) == jsonencode(output.watcher_environment)
    error_message = "The watcher gets its environment."
  }
}

run "cluster_side_of_all_namespaces_with_pods" {
  command = apply

  variables {
    proxy_namespaces  = ["*"]
    providers_enabled = ["gcp", "kubernetes"]
    cluster = {
      endpoint          = "https://gke-abc.europe-west1.gke.goog"
      watcher_namespace = "egress-two"
      watcher_image     = "europe-west1-docker.pkg.dev/my-project/prod-functions/watcher@sha256:0a0b"
    }
  }

  assert {
    condition = toset([
      for manifest in split("---\n", output.cluster_files["bindings.yaml"]) : yamldecode(manifest).metadata.name
      ]) == toset([
      "prod-egress-proxies-cluster-identity",
      "prod-egress-proxies-gc", "prod-egress-proxies-gc-pods",
      "prod-egress-proxies-provision", "prod-egress-proxies-provision-pods",
      "prod-egress-proxies-watcher", "prod-egress-proxies-watcher-pods",
    ])
    error_message = "Everywhere, each role is bound once, under a name of this installation."
  }

  assert {
    condition = jsonencode(yamldecode(output.cluster_files["kustomization.yaml"]).images) == jsonencode([{
      name    = "watcher"
      newName = "europe-west1-docker.pkg.dev/my-project/prod-functions/watcher"
      digest  = "sha256:0a0b"
    }])
    error_message = "The image is named by its digest."
  }

  assert {
    condition     = jsonencode(yamldecode(output.cluster_files["kustomization.yaml"]).components) == jsonencode(["../terraform/cluster/kubernetes-provider"])
    error_message = "Pods as machines need the component."
  }

  assert {
    condition     = length(yamldecode(output.cluster_files["kustomization.yaml"]).patches) == 5
    error_message = "A watcher of another namespace is moved there."
  }
}
