variable "project_id" {
  description = "The project in which everything is created."
  type        = string
}

variable "region" {
  description = "Region of the functions and of the cluster."
  type        = string
  default     = "europe-west1"
}

variable "cluster_name" {
  description = "The GKE cluster that holds the Proxies; its DNS endpoint must allow external traffic."
  type        = string
}

variable "watcher_image" {
  description = "The watcher's image, by digest; not known yet at the first apply."
  type        = string
  default     = "watcher"
}

variable "kustomize_base" {
  description = "The folder terraform/cluster, as seen from the folder of the cluster files."
  type        = string
  default     = "../../../cluster"
}

variable "crawler_ranges" {
  description = "Where crawlers come from."
  type        = list(string)
}

variable "crawlers" {
  description = "IAM members that may lease proxies."
  type        = set(string)
}

variable "operators" {
  description = "IAM members that may look at gc's plan and confirm it."
  type        = set(string)
  default     = []
}

variable "notification_channels" {
  description = "Channels that alerts notify, by resource name."
  type        = list(string)
  default     = []
}

variable "deletion_protection" {
  description = "Keeps the databases; set to false, and applied, before a destroy that is meant to delete them."
  type        = bool
  default     = true
}

variable "dist_dir" {
  description = "The folder with the built zips."
  type        = string
  default     = "../../../dist"
}

variable "exit_addresses" {
  description = "How many addresses the crawled sites see."
  type        = number
  default     = 2
}
