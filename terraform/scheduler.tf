# The minute that drives health and gc. A tick that fails is made up for by the next one.

locals {
  jobs = {
    health = { attempt_deadline = "180s" }
    gc     = { attempt_deadline = "180s" }
  }
}

resource "google_cloud_scheduler_job" "main" {
  for_each = local.jobs

  project          = var.project_id
  region           = var.region
  name             = "${local.prefix}${each.key}"
  description      = "One run of ${each.key}."
  schedule         = "* * * * *"
  time_zone        = "Etc/UTC"
  attempt_deadline = each.value.attempt_deadline

  retry_config {
    retry_count = 0
  }

  http_target {
    http_method = "POST"
    uri         = "${module.function[each.key].uri}/"

    oidc_token {
      service_account_email = google_service_account.caller["scheduler"].email
      audience              = module.function[each.key].uri
    }
  }
}
