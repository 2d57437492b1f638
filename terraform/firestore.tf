# Two databases: what all functions share, and credentials, which only those see that hand them out or use them.

locals {
  firestore_location   = coalesce(var.firestore.location, var.region)
  database             = coalesce(var.firestore.database, "${local.prefix}proxies")
  credentials_database = coalesce(var.firestore.credentials_database, "${local.prefix}credentials")
}

resource "google_firestore_database" "main" {
  for_each = { main = local.database, credentials = local.credentials_database }

  project                           = var.project_id
  name                              = each.value
  location_id                       = local.firestore_location
  type                              = "FIRESTORE_NATIVE"
  point_in_time_recovery_enablement = each.key == "main" ? "POINT_IN_TIME_RECOVERY_ENABLED" : "POINT_IN_TIME_RECOVERY_DISABLED"
  delete_protection_state           = var.deletion_protection ? "DELETE_PROTECTION_ENABLED" : "DELETE_PROTECTION_DISABLED"
  deletion_policy                   = var.deletion_protection ? "ABANDON" : "DELETE"

  depends_on = [google_project_service.main]
}

locals {
  # Deleted by Firestore some time after the moment in this field; never relied upon.
  ttl = {
    idempotency = "expireAt"
    sightings   = "expireAt"
  }

  # Large or fast-changing fields that no query reads: an index over them costs writes, and has a limit per document.
  unindexed = {
    record = { collection = "proxies", field = "record" }
    gate   = { collection = "leases", field = "gate" }
    leases = { collection = "leases", field = "leases" }
    flips  = { collection = "rounds", field = "flips" }
    doubts = { collection = "rounds", field = "doubts" }
    view   = { collection = "views", field = "data" }
    fleet  = { collection = "fleet", field = "data" }
  }

  indexes = {
    probed      = { collection = "proxies", fields = ["installation", "probed"] }
    changed     = { collection = "proxies", fields = ["installation", "changedAt"] }
    unpublished = { collection = "proxies", fields = ["installation", "gone", "probed"] }
    shard       = { collection = "proxies", fields = ["installation", "probed", "bucket"] }
    replacing   = { collection = "proxies", fields = ["installation", "replacing"] }
    stuck       = { collection = "proxies", fields = ["installation", "stuckOn"] }
    managed     = { collection = "proxies", fields = ["installation", "gone", "managed"] }
    free        = { collection = "leases", fields = ["gate.open", "freeAt"] }
  }
}

resource "google_firestore_field" "ttl" {
  for_each = local.ttl

  project    = var.project_id
  database   = google_firestore_database.main["main"].name
  collection = each.key
  field      = each.value

  ttl_config {}
  index_config {}
}

resource "google_firestore_field" "unindexed" {
  for_each = local.unindexed

  project    = var.project_id
  database   = google_firestore_database.main["main"].name
  collection = each.value.collection
  field      = each.value.field

  index_config {}
}

resource "google_firestore_field" "holders" {
  project    = var.project_id
  database   = google_firestore_database.main["main"].name
  collection = "leases"
  field      = "holders"

  index_config {
    indexes {
      array_config = "CONTAINS"
    }
  }
}

resource "google_firestore_index" "main" {
  for_each = local.indexes

  project    = var.project_id
  database   = google_firestore_database.main["main"].name
  collection = each.value.collection

  dynamic "fields" {
    for_each = each.value.fields
    content {
      field_path = fields.value
      order      = "ASCENDING"
    }
  }
}
