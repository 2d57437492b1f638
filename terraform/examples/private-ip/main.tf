# Proxies without public addresses (externalIP: None): crawlers run in the same network, and all proxies leave through Cloud
# NAT, whose reserved addresses are what the crawled sites see.

provider "google" {
  project = var.project_id
  region  = var.region
}

data "google_container_cluster" "main" {
  name     = var.cluster_name
  location = var.region
}

resource "google_compute_network" "crawling" {
  name                    = "crawling"
  auto_create_subnetworks = false
}

resource "google_compute_subnetwork" "proxies" {
  name                     = "proxies"
  region                   = var.region
  network                  = google_compute_network.crawling.id
  ip_cidr_range            = "10.30.0.0/20"
  private_ip_google_access = true
}

resource "google_compute_address" "exit" {
  count  = var.exit_addresses
  name   = "proxies-exit-${count.index}"
  region = var.region
}

resource "google_compute_router" "proxies" {
  name    = "proxies"
  region  = var.region
  network = google_compute_network.crawling.id
}

resource "google_compute_router_nat" "proxies" {
  name                               = "proxies"
  region                             = var.region
  router                             = google_compute_router.proxies.name
  nat_ip_allocate_option             = "MANUAL_ONLY"
  nat_ips                            = google_compute_address.exit[*].self_link
  source_subnetwork_ip_ranges_to_nat = "LIST_OF_SUBNETWORKS"
  # Crawling opens many connections at once: with the default of 64 ports a machine soon has none left.
  min_ports_per_vm = 4096

  subnetwork {
    name                    = google_compute_subnetwork.proxies.id
    source_ip_ranges_to_nat = ["ALL_IP_RANGES"]
  }
}

module "egress_proxies" {
  source = "../.."

  project_id       = var.project_id
  region           = var.region
  installation_id  = "inner"
  proxy_namespaces = ["crawlers"]

  cluster = {
    endpoint       = "https://${data.google_container_cluster.main.control_plane_endpoints_config[0].dns_endpoint_config[0].endpoint}"
    watcher_image  = var.watcher_image
    kustomize_base = var.kustomize_base
  }
  network     = { name = google_compute_network.crawling.name, health_range = "10.31.0.0/26" }
  subnetworks = [{ region = var.region, name = google_compute_subnetwork.proxies.name }]

  crawler_ranges = var.crawler_ranges
  crawlers       = var.crawlers
  operators      = var.operators
  dist_dir       = var.dist_dir

  alerts              = { notification_channels = var.notification_channels }
  deletion_protection = var.deletion_protection
}
