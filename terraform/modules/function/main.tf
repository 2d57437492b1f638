# One function from its zip, and who may call it.

terraform {
  required_version = ">= 1.9"

  required_providers {
    google = {
      source = "hashicorp/google"
    }
  }
}

# The hash is part of the name: only another code is another object, and only that deploys anew.
resource "google_storage_bucket_object" "code" {
  bucket = var.deployment.bucket
  name   = "${var.entry_point}-${filesha256(var.zip)}.zip"
  source = var.zip
}

resource "google_cloudfunctions2_function" "main" {
  project  = var.deployment.project
  location = var.deployment.region
  name     = var.name
  labels   = var.deployment.labels

  build_config {
    runtime           = "nodejs24"
    entry_point       = var.entry_point
    service_account   = var.deployment.build_account
    docker_repository = var.deployment.docker_repository

    source {
      storage_source {
        bucket = google_storage_bucket_object.code.bucket
        object = google_storage_bucket_object.code.name
      }
    }

    on_deploy_update_policy {}
  }

  service_config {
    service_account_email            = var.account
    environment_variables            = var.environment
    available_memory                 = var.settings.memory
    available_cpu                    = var.settings.cpu
    timeout_seconds                  = var.settings.timeout
    max_instance_request_concurrency = 80
    min_instance_count               = var.settings.min_instances
    max_instance_count               = var.settings.max_instances
    ingress_settings                 = var.settings.internal ? "ALLOW_INTERNAL_ONLY" : "ALLOW_ALL"
    all_traffic_on_latest_revision   = true
    direct_vpc_egress                = var.egress_subnetwork == null ? null : "VPC_EGRESS_ALL_TRAFFIC"

    dynamic "direct_vpc_network_interface" {
      for_each = var.egress_subnetwork[*]
      content {
        network    = direct_vpc_network_interface.value.network
        subnetwork = direct_vpc_network_interface.value.subnetwork
      }
    }
  }
}

resource "google_cloud_run_v2_service_iam_member" "invoker" {
  for_each = var.invokers

  project  = var.deployment.project
  location = var.deployment.region
  name     = google_cloudfunctions2_function.main.name
  role     = "roles/run.invoker"
  member   = each.value
}
