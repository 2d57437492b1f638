# One installation: everything that it owns in the project carries its id, so that several fit into one project.

locals {
  prefix = "${var.installation_id}-"

  labels = merge(var.labels, { egress-installation = var.installation_id })

  # Firewall rules aim at this tag; provision puts it on every machine.
  proxy_tag = "${local.prefix}proxy"

  apis = toset([
    "artifactregistry.googleapis.com",
    "cloudbuild.googleapis.com",
    "cloudfunctions.googleapis.com",
    "cloudscheduler.googleapis.com",
    "compute.googleapis.com",
    "container.googleapis.com",
    "firestore.googleapis.com",
    "iam.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "pubsub.googleapis.com",
    "run.googleapis.com",
  ])
}

data "google_project" "main" {
  project_id = var.project_id

  depends_on = [google_project_service.main]
}

resource "google_project_service" "main" {
  for_each = local.apis

  project            = var.project_id
  service            = each.value
  disable_on_destroy = false
}
