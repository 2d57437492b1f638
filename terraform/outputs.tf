output "discovery_url" {
  description = "Where crawlers get leases."
  value       = module.function["discovery"].uri
}

output "gc_url" {
  description = "Where operators look at gc's plan."
  value       = module.function["gc"].uri
}

output "health_addresses" {
  description = "The addresses from which health probes: let them in wherever External proxies have a firewall of their own."
  value       = google_compute_address.health[*].address
}

output "cluster_users" {
  description = "Users for the RoleBindings of the cluster side."
  value       = { for name in ["provision", "gc"] : name => google_service_account.function[name].email }
}

output "watcher_environment" {
  description = "Environment of the watcher's Deployment."
  value       = local.watcher_environment
}

output "cluster_files" {
  description = "Files, by name, of a kustomization for this installation: kubectl apply -k the folder that holds them."
  value       = local.cluster_files
}

output "image_repository" {
  description = "Where to push the watcher's image: this and a name behind a slash."
  value       = "${var.region}-docker.pkg.dev/${var.project_id}/${google_artifact_registry_repository.images.repository_id}"
}

output "topics" {
  description = "Names of the topics."
  value       = { for key, topic in google_pubsub_topic.main : key => topic.name }
}

output "dead_letter_subscriptions" {
  description = "Subscriptions with the messages that could not be delivered."
  value       = { for key, subscription in google_pubsub_subscription.dead : key => subscription.name }
}

output "databases" {
  description = "Names of the Firestore databases."
  value       = { for key, database in google_firestore_database.main : key => database.name }
}
