variable "project_id" {
  description = "The project in which everything is created."
  type        = string
}

variable "region" {
  description = "The region of the functions, topics and jobs, such as europe-west1."
  type        = string
}

variable "installation_id" {
  description = "Identity of this installation: part of every name and label. It cannot be changed later."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9]{2,15}$", var.installation_id))
    error_message = "The installation id must be 3 to 16 lower-case letters and digits, starting with a letter."
  }
}

variable "proxy_namespaces" {
  description = "The namespaces whose Proxies belong to this installation, or [\"*\"]. Installations must not overlap."
  type        = list(string)

  validation {
    condition = length(var.proxy_namespaces) > 0 && (
      var.proxy_namespaces == tolist(["*"]) ||
      alltrue([for name in var.proxy_namespaces : can(regex("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", name))])
    )
    error_message = "Give at least one namespace, by its name, or [\"*\"] alone."
  }
}

variable "cluster" {
  description = "The GKE cluster that holds the Proxies: URL of its DNS endpoint, the watcher's image (by digest) and Kubernetes service account, and where the folder cluster is to be found from the files of the output cluster_files."
  type = object({
    endpoint                = string
    watcher_image           = optional(string, "watcher")
    watcher_namespace       = optional(string, "egress-proxies")
    watcher_service_account = optional(string, "watcher")
    kustomize_base          = optional(string, "../terraform/cluster")
  })

  validation {
    condition     = startswith(var.cluster.endpoint, "https://")
    error_message = "The cluster's endpoint must be an https URL."
  }
}

variable "network" {
  description = "The network of the proxies, and a free range of at least /26 in it from which health probes them."
  type = object({
    name         = string
    health_range = string
  })

  validation {
    condition     = can(cidrhost(var.network.health_range, 0)) && try(tonumber(split("/", var.network.health_range)[1]) <= 26, false)
    error_message = "The health range must be a CIDR range of /26 or larger."
  }
}

variable "subnetworks" {
  description = "Subnetworks in which proxies may be created, by region and name."
  type = set(object({
    region = string
    name   = string
  }))

  validation {
    condition     = length(var.subnetworks) > 0
    error_message = "Give at least one subnetwork."
  }
}

variable "crawler_ranges" {
  description = "CIDR ranges from which crawlers reach the proxies. Everybody else is kept out."
  type        = list(string)

  validation {
    condition     = length(var.crawler_ranges) > 0
    error_message = "Give at least one range: a rule without ranges would admit everybody."
  }
  validation {
    condition     = alltrue([for range in var.crawler_ranges : can(cidrnetmask(range)) || can(cidrhost(range, 0))])
    error_message = "Each range must be in CIDR notation."
  }
  validation {
    # Two halves of the internet are the internet: only prefixes of some length are ranges of somebody.
    condition = alltrue([
      for range in var.crawler_ranges : try(tonumber(split("/", range)[1]) >= (strcontains(range, ":") ? 16 : 8), false)
    ])
    error_message = "A proxy that is open to everybody is abused within hours: no range may be shorter than /8 (IPv6: /16)."
  }
}

variable "crawlers" {
  description = "IAM members that may use the discovery API."
  type        = set(string)

  validation {
    condition     = length(setintersection(var.crawlers, ["allUsers", "allAuthenticatedUsers"])) == 0
    error_message = "Leases are not for everybody: name the members."
  }
}

variable "operators" {
  description = "IAM members that may look at gc's plan and confirm it."
  type        = set(string)
  default     = []

  validation {
    condition     = length(setintersection(var.operators, ["allUsers", "allAuthenticatedUsers"])) == 0
    error_message = "Name the operators."
  }
}

variable "proxy_ports" {
  description = "Ports on which proxies listen (spec.port)."
  type        = list(number)
  default     = [3128]

  validation {
    condition     = length(var.proxy_ports) > 0 && alltrue([for port in var.proxy_ports : port >= 1 && port <= 65535])
    error_message = "Give at least one port between 1 and 65535."
  }
}

variable "private_targets" {
  description = "CIDR ranges inside the network that crawlers may reach through the proxies. All other private ranges are denied to them."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for range in var.private_targets : can(cidrhost(range, 0))])
    error_message = "Each range must be in CIDR notation."
  }
  validation {
    # The whole of a private range is what the denial is about.
    condition = alltrue([
      for range in var.private_targets : try(tonumber(split("/", range)[1]) >= (strcontains(range, ":") ? 48 : 16), false)
    ])
    error_message = "Name what crawlers need: no range may be shorter than /16 (IPv6: /48)."
  }
}

variable "providers_enabled" {
  description = "Machine providers that Proxies may name."
  type        = list(string)
  default     = ["gcp"]

  validation {
    condition     = length(var.providers_enabled) > 0
    error_message = "Give at least one provider."
  }
}

variable "max_replacing_percent" {
  description = "How much of the fleet may be replaced at once, in percent; one Proxy at the least. A Proxy whose new machine never gets healthy keeps its place, for all that want the very same machine: a bad template stops by itself, and holds up no other."
  type        = number
  default     = 25
  nullable    = false

  validation {
    condition     = floor(var.max_replacing_percent) == var.max_replacing_percent && var.max_replacing_percent >= 1 && var.max_replacing_percent <= 100
    error_message = "max_replacing_percent must be a whole number from 1 to 100."
  }
}

variable "allow_private_endpoints" {
  description = "Whether External Proxies may have loopback, link-local or private addresses."
  type        = bool
  default     = false
}

variable "firestore" {
  description = "Location and names of the two databases; names default to ones with the installation id in them."
  type = object({
    location             = optional(string)
    database             = optional(string)
    credentials_database = optional(string)
  })
  default = {}

  validation {
    condition     = var.firestore.database == null || var.firestore.database != var.firestore.credentials_database
    error_message = "Credentials need a database of their own."
  }
}

variable "deletion_protection" {
  description = "Keeps the databases when the module is destroyed, and refuses to delete them."
  type        = bool
  default     = true
}

variable "lease" {
  description = "Bounds and default of a lease's duration."
  type = object({
    ttl_min_seconds     = optional(number, 10)
    ttl_max_seconds     = optional(number, 86400)
    ttl_default_seconds = optional(number, 300)
  })
  default = {}

  validation {
    condition     = var.lease.ttl_min_seconds <= var.lease.ttl_default_seconds && var.lease.ttl_default_seconds <= var.lease.ttl_max_seconds
    error_message = "The default must lie between the minimum and the maximum."
  }
}

variable "gc" {
  description = "How old an orphan must be, how far apart two sightings are, and how many one run may delete."
  type = object({
    min_age_seconds      = optional(number, 600)
    sighting_gap_seconds = optional(number, 120)
    max_deletions        = optional(number, 10)
  })
  default = {}

  validation {
    condition     = var.gc.min_age_seconds >= 60 && var.gc.sighting_gap_seconds >= 60 && var.gc.max_deletions >= 1
    error_message = "Age and gap must be at least 60 seconds, deletions at least 1."
  }
}

variable "health" {
  description = "A page of yours that stands in where echo refuses or cannot be reached, how many probes may be in flight, and in how many parts the fleet is judged."
  type = object({
    second_target_url = optional(string, "")
    probes_at_once    = optional(number, 64)
    shards            = optional(number, 1)
  })
  default = {}

  validation {
    condition     = var.health.second_target_url == "" || startswith(var.health.second_target_url, "https://")
    error_message = "The second target must be an https URL: over http any proxy could answer in its name."
  }
  validation {
    condition     = var.health.probes_at_once >= 1 && var.health.probes_at_once <= 1000 && var.health.shards >= 1 && var.health.shards <= 8
    error_message = "Probes in flight must be 1 to 1000, shards 1 to 8."
  }
}

variable "functions" {
  description = "Size of each function, by its name."
  type = map(object({
    memory        = optional(string)
    cpu           = optional(string)
    min_instances = optional(number)
    max_instances = optional(number)
  }))
  default = {}

  validation {
    condition     = length(setsubtract(keys(var.functions), ["provision", "health", "discovery", "gc", "echo"])) == 0
    error_message = "There are the functions provision, health, discovery, gc and echo."
  }
}

variable "dist_dir" {
  description = "The folder with the built zips, one per function."
  type        = string
}

variable "alerts" {
  description = "Whether there are alert policies, the channels that they notify (by resource name), and a URL under which the folder runbooks is to be found; each alert contains its runbook in any case."
  type = object({
    enabled               = optional(bool, true)
    notification_channels = optional(list(string), [])
    runbooks_url          = optional(string, "")
  })
  default = {}

  validation {
    condition     = var.alerts.runbooks_url == "" || can(regex("^https://.*[^/]$", var.alerts.runbooks_url))
    error_message = "The URL of the runbooks must be an https URL without a slash at its end."
  }
}

variable "labels" {
  description = "Labels for everything that can carry them."
  type        = map(string)
  default     = {}
}
