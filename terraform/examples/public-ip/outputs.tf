output "discovery_url" {
  description = "Where crawlers get leases."
  value       = module.egress_proxies.discovery_url
}

output "gc_url" {
  description = "Where operators look at gc's plan."
  value       = module.egress_proxies.gc_url
}

output "health_addresses" {
  description = "The addresses from which health probes."
  value       = module.egress_proxies.health_addresses
}

output "image_repository" {
  description = "Where to push the watcher's image."
  value       = module.egress_proxies.image_repository
}

output "cluster_files" {
  description = "Files of the cluster side, by name."
  value       = module.egress_proxies.cluster_files
}
