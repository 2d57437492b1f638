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
    condition     = !contains(google_project_iam_custom_role.machines["gc"].permissions, "compute.instances.create")
    error_message = "gc creates nothing."
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
