# Who reaches a proxy: crawlers and health, and nobody else. Health's public addresses are fixed for that.

resource "google_compute_subnetwork" "health" {
  project                  = var.project_id
  region                   = var.region
  network                  = var.network.name
  name                     = "${local.prefix}health"
  ip_cidr_range            = var.network.health_range
  private_ip_google_access = true

  depends_on = [google_project_service.main]
}

resource "google_compute_address" "health" {
  count = 2

  project = var.project_id
  region  = var.region
  name    = "${local.prefix}health-${count.index}"
  labels  = local.labels

  depends_on = [google_project_service.main]
}

resource "google_compute_router" "health" {
  project = var.project_id
  region  = var.region
  network = var.network.name
  name    = "${local.prefix}health"

  depends_on = [google_project_service.main]
}

resource "google_compute_router_nat" "health" {
  project                            = var.project_id
  region                             = var.region
  router                             = google_compute_router.health.name
  name                               = "${local.prefix}health"
  nat_ip_allocate_option             = "MANUAL_ONLY"
  nat_ips                            = google_compute_address.health[*].self_link
  source_subnetwork_ip_ranges_to_nat = "LIST_OF_SUBNETWORKS"

  subnetwork {
    name                    = google_compute_subnetwork.health.id
    source_ip_ranges_to_nat = ["ALL_IP_RANGES"]
  }
}

locals {
  # Tags cannot name the instances behind Direct VPC egress, so the whole range of health is let in.
  health_ranges = concat(
    [var.network.health_range],
    [for address in google_compute_address.health : "${address.address}/32"],
  )
  ipv6_crawlers = [for range in var.crawler_ranges : range if strcontains(range, ":")]
}

# A rule has ranges of one address family only.
resource "google_compute_firewall" "allow_proxy" {
  for_each = merge(
    { ipv4 = concat(local.health_ranges, [for range in var.crawler_ranges : range if !strcontains(range, ":")]) },
    length(local.ipv6_crawlers) == 0 ? {} : { ipv6 = local.ipv6_crawlers },
  )

  project       = var.project_id
  network       = var.network.name
  name          = "${local.prefix}proxy-allow-${each.key}"
  description   = "Crawlers and health reach the proxies."
  direction     = "INGRESS"
  priority      = 900
  source_ranges = each.value
  target_tags   = [local.proxy_tag]

  allow {
    protocol = "tcp"
    ports    = [for port in var.proxy_ports : tostring(port)]
  }
}

# Whatever wider rules the network has: nobody else reaches a proxy's port.
resource "google_compute_firewall" "deny_proxy" {
  for_each = { ipv4 = "0.0.0.0/0", ipv6 = "::/0" }

  project       = var.project_id
  network       = var.network.name
  name          = "${local.prefix}proxy-deny-${each.key}"
  description   = "Nobody else reaches the proxies."
  direction     = "INGRESS"
  priority      = 910
  source_ranges = [each.value]
  target_tags   = [local.proxy_tag]

  deny {
    protocol = "tcp"
    ports    = [for port in var.proxy_ports : tostring(port)]
  }

  log_config {
    metadata = "EXCLUDE_ALL_METADATA"
  }

  depends_on = [google_project_service.main]
}

# Crawlers send their proxies wherever they like; the inside of the network is not for them.
locals {
  private_ranges = {
    ipv4 = ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16"]
    ipv6 = ["fc00::/7"]
  }
  private_targets = { for family, ranges in {
    ipv4 = [for range in var.private_targets : range if !strcontains(range, ":")]
    ipv6 = [for range in var.private_targets : range if strcontains(range, ":")]
  } : family => ranges if length(ranges) > 0 }
}

resource "google_compute_firewall" "allow_private_targets" {
  for_each = local.private_targets

  project            = var.project_id
  network            = var.network.name
  name               = "${local.prefix}proxy-targets-${each.key}"
  description        = "What proxies may reach inside the network."
  direction          = "EGRESS"
  priority           = 920
  destination_ranges = each.value
  target_tags        = [local.proxy_tag]

  allow {
    protocol = "tcp"
  }

  depends_on = [google_project_service.main]
}

resource "google_compute_firewall" "deny_private" {
  for_each = local.private_ranges

  project            = var.project_id
  network            = var.network.name
  name               = "${local.prefix}proxy-private-${each.key}"
  description        = "Proxies reach nothing else inside the network."
  direction          = "EGRESS"
  priority           = 930
  destination_ranges = each.value
  target_tags        = [local.proxy_tag]

  deny {
    protocol = "all"
  }

  log_config {
    metadata = "EXCLUDE_ALL_METADATA"
  }

  depends_on = [google_project_service.main]
}
