# One identity per function, each with what it needs and no more. Bindings are additive: others' stay as they are.

locals {
  functions = ["provision", "health", "discovery", "gc", "echo"]

  # Who calls functions, and who builds them.
  callers = {
    push      = "Pub/Sub's push to functions"
    scheduler = "Cloud Scheduler's calls of functions"
    build     = "Builds of functions"
  }

  role_suffix = replace(var.installation_id, "-", "_")

  watcher = join("/", [
    "principal://iam.googleapis.com/projects/${data.google_project.main.number}/locations/global",
    "workloadIdentityPools/${var.project_id}.svc.id.goog/subject",
    "ns/${var.cluster.watcher_namespace}/sa/${var.cluster.watcher_service_account}",
  ])
}

resource "google_service_account" "function" {
  for_each = toset(local.functions)

  project      = var.project_id
  account_id   = "${local.prefix}${each.key}"
  display_name = "Egress proxies (${var.installation_id}): function ${each.key}"

  depends_on = [google_project_service.main]
}

resource "google_service_account" "caller" {
  for_each = local.callers

  project      = var.project_id
  account_id   = "${local.prefix}${each.key}"
  display_name = "Egress proxies (${var.installation_id}): ${each.value}"

  depends_on = [google_project_service.main]
}

resource "google_project_iam_member" "build" {
  for_each = toset(["roles/artifactregistry.writer", "roles/logging.logWriter", "roles/storage.objectViewer"])

  project = var.project_id
  role    = each.value
  member  = google_service_account.caller["build"].member
}

# Firestore.

locals {
  database_users = {
    for pair in concat(
      setproduct(["provision", "health", "discovery", "gc"], ["main"]),
      setproduct(["provision", "health", "discovery"], ["credentials"]),
    ) : join("-", pair) => { function = pair[0], database = pair[1] }
  }
}

resource "google_project_iam_member" "database" {
  for_each = local.database_users

  project = var.project_id
  role    = "roles/datastore.user"
  member  = google_service_account.function[each.value.function].member

  condition {
    title      = "${local.prefix}${each.value.database}-database"
    expression = "resource.name == \"projects/${var.project_id}/databases/${google_firestore_database.main[each.value.database].name}\""
  }
}

# The cluster: reaching it is a right here, everything else is RBAC over there.

resource "google_project_iam_custom_role" "cluster" {
  project     = var.project_id
  role_id     = "egressProxiesCluster_${local.role_suffix}"
  title       = "Egress proxies (${var.installation_id}): reach the cluster"
  permissions = ["container.clusters.connect", "container.clusters.get"]

  depends_on = [google_project_service.main]
}

resource "google_project_iam_member" "cluster" {
  for_each = toset(["provision", "gc"])

  project = var.project_id
  role    = google_project_iam_custom_role.cluster.name
  member  = google_service_account.function[each.key].member
}

# Machines and their boot disks: seen by both; made by provision, deleted by both, and only those with our name.

locals {
  machine_permissions = {
    provision = [
      "compute.disks.create",
      "compute.disks.delete",
      "compute.disks.get",
      "compute.disks.setLabels",
      "compute.instances.create",
      "compute.instances.delete",
      "compute.instances.get",
      "compute.instances.setLabels",
      "compute.instances.setMetadata",
      "compute.instances.setTags",
      "compute.instances.start",
    ]
    gc = [
      "compute.disks.delete",
      "compute.disks.get",
      "compute.instances.delete",
      "compute.instances.get",
    ]
  }

  own_machines = join(" || ", [
    for kind in ["instances", "disks"] :
    "resource.name.extract(\"/${kind}/{name}\").startsWith(\"${local.prefix}\")"
  ])
}

resource "google_project_iam_custom_role" "machines" {
  for_each = local.machine_permissions

  project     = var.project_id
  role_id     = "egressProxiesMachines_${each.key}_${local.role_suffix}"
  title       = "Egress proxies (${var.installation_id}): machines, as ${each.key} needs them"
  permissions = each.value

  depends_on = [google_project_service.main]
}

resource "google_project_iam_member" "machines" {
  for_each = local.machine_permissions

  project = var.project_id
  role    = google_project_iam_custom_role.machines[each.key].name
  member  = google_service_account.function[each.key].member

  condition {
    title      = "${local.prefix}machines"
    expression = local.own_machines
  }
}

# Lists and operations have no machine's name to judge by.
resource "google_project_iam_custom_role" "fleet" {
  project = var.project_id
  role_id = "egressProxiesFleet_${local.role_suffix}"
  title   = "Egress proxies (${var.installation_id}): see the fleet"
  permissions = [
    "compute.disks.list",
    "compute.images.useReadOnly",
    "compute.instances.list",
    "compute.zoneOperations.get",
    "compute.zoneOperations.list",
  ]

  depends_on = [google_project_service.main]
}

resource "google_project_iam_member" "fleet" {
  for_each = toset(["provision", "gc"])

  project = var.project_id
  role    = google_project_iam_custom_role.fleet.name
  member  = google_service_account.function[each.key].member
}

resource "google_project_iam_custom_role" "subnetwork" {
  project     = var.project_id
  role_id     = "egressProxiesSubnetwork_${local.role_suffix}"
  title       = "Egress proxies (${var.installation_id}): put machines into a subnetwork"
  permissions = ["compute.subnetworks.use", "compute.subnetworks.useExternalIp"]

  depends_on = [google_project_service.main]
}

resource "google_compute_subnetwork_iam_member" "provision" {
  for_each = { for subnetwork in var.subnetworks : "${subnetwork.region}/${subnetwork.name}" => subnetwork }

  project    = var.project_id
  region     = each.value.region
  subnetwork = each.value.name
  role       = google_project_iam_custom_role.subnetwork.name
  member     = google_service_account.function["provision"].member
}
