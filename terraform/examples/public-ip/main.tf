# Proxies with a public address each: crawlers come from known addresses on the internet.

provider "google" {
  project = var.project_id
  region  = var.region
}

data "google_container_cluster" "main" {
  name     = var.cluster_name
  location = var.region
}

module "egress_proxies" {
  source = "../.."

  project_id       = var.project_id
  region           = var.region
  installation_id  = "prod"
  proxy_namespaces = ["crawlers"]

  cluster = {
    endpoint       = "https://${data.google_container_cluster.main.control_plane_endpoints_config[0].dns_endpoint_config[0].endpoint}"
    watcher_image  = var.watcher_image
    kustomize_base = var.kustomize_base
  }
  network     = { name = "default", health_range = "10.20.0.0/26" }
  subnetworks = [{ region = var.region, name = "default" }]

  crawler_ranges = var.crawler_ranges
  crawlers       = var.crawlers
  operators      = var.operators
  dist_dir       = var.dist_dir

  alerts              = { notification_channels = var.notification_channels }
  deletion_protection = var.deletion_protection
}
