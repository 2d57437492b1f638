# Topics with one push subscription each; what cannot be delivered is kept for a person to see.

locals {
  subscriptions = {
    changes = {
      topic    = "proxy-changes"
      name     = "proxy-changes-provision"
      ordered  = true
      function = "provision"
      path     = "/"
    }
    probes = {
      topic    = "proxy-probes"
      name     = "proxy-probes-health"
      ordered  = false
      function = "health"
      path     = "/probes"
    }
  }

  pubsub_agent = "serviceAccount:service-${data.google_project.main.number}@gcp-sa-pubsub.iam.gserviceaccount.com"
}

resource "google_pubsub_topic" "main" {
  for_each = local.subscriptions

  project = var.project_id
  name    = "${local.prefix}${each.value.topic}"
  labels  = local.labels

  depends_on = [google_project_service.main]
}

resource "google_pubsub_topic" "dead" {
  for_each = local.subscriptions

  project = var.project_id
  name    = "${local.prefix}${each.value.topic}-dead"
  labels  = local.labels

  depends_on = [google_project_service.main]
}

resource "google_pubsub_subscription" "dead" {
  for_each = local.subscriptions

  project                    = var.project_id
  name                       = "${local.prefix}${each.value.topic}-dead"
  topic                      = google_pubsub_topic.dead[each.key].id
  message_retention_duration = "604800s"
  labels                     = local.labels

  expiration_policy {
    ttl = ""
  }
}

resource "google_pubsub_subscription" "main" {
  for_each = local.subscriptions

  project                 = var.project_id
  name                    = "${local.prefix}${each.value.name}"
  topic                   = google_pubsub_topic.main[each.key].id
  enable_message_ordering = each.value.ordered
  # The push request may take this long, too: longer than any run of the function.
  ack_deadline_seconds       = 600
  message_retention_duration = "604800s"
  labels                     = local.labels

  push_config {
    push_endpoint = "${module.function[each.value.function].uri}${each.value.path}"

    oidc_token {
      service_account_email = google_service_account.caller["push"].email
      audience              = module.function[each.value.function].uri
    }
  }

  retry_policy {
    minimum_backoff = "5s"
    maximum_backoff = "60s"
  }

  dead_letter_policy {
    dead_letter_topic     = google_pubsub_topic.dead[each.key].id
    max_delivery_attempts = 20
  }

  expiration_policy {
    ttl = ""
  }

  depends_on = [google_pubsub_topic_iam_member.dead_letters]
}

# Without these two the agent of Pub/Sub can neither move a message to the dead letters nor take it from its subscription.
resource "google_pubsub_topic_iam_member" "dead_letters" {
  for_each = local.subscriptions

  project = var.project_id
  topic   = google_pubsub_topic.dead[each.key].name
  role    = "roles/pubsub.publisher"
  member  = local.pubsub_agent
}

resource "google_pubsub_subscription_iam_member" "dead_letters" {
  for_each = local.subscriptions

  project      = var.project_id
  subscription = google_pubsub_subscription.main[each.key].name
  role         = "roles/pubsub.subscriber"
  member       = local.pubsub_agent
}

locals {
  publishers = merge(
    { for name in ["provision", "health", "gc"] : "${name}-changes" => {
      topic  = "changes"
      member = google_service_account.function[name].member
    } },
    { for name in ["provision", "discovery"] : "${name}-probes" => {
      topic  = "probes"
      member = google_service_account.function[name].member
    } },
    { watcher-changes = { topic = "changes", member = local.watcher } },
  )
}

resource "google_pubsub_topic_iam_member" "publisher" {
  for_each = local.publishers

  project = var.project_id
  topic   = google_pubsub_topic.main[each.value.topic].name
  role    = "roles/pubsub.publisher"
  member  = each.value.member
}
