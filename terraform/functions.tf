# The functions. Their environment is here and nowhere else; what a function does not read it does not get.

locals {
  common = {
    GOOGLE_CLOUD_PROJECT = var.project_id
    INSTALLATION_ID      = var.installation_id
  }
  namespaces = {
    PROXY_NAMESPACES = join(",", var.proxy_namespaces)
  }
  main_database = {
    FIRESTORE_DATABASE = google_firestore_database.main["main"].name
  }
  databases = merge(local.main_database, {
    CREDENTIALS_DATABASE = google_firestore_database.main["credentials"].name
  })
  changes = {
    PROXY_CHANGES_TOPIC = google_pubsub_topic.main["changes"].name
  }
  topics = merge(local.changes, {
    PROXY_PROBES_TOPIC = google_pubsub_topic.main["probes"].name
  })
  cluster = {
    CLUSTER_ENDPOINT = var.cluster.endpoint
  }
  machines = {
    PROVIDERS = join(",", var.providers_enabled)
  }

  environment = {
    provision = merge(local.common, local.namespaces, local.databases, local.topics, local.cluster, local.machines, {
      ALLOW_PRIVATE_ENDPOINTS = tostring(var.allow_private_endpoints)
      MAX_REPLACING_PERCENT   = tostring(var.max_replacing_percent)
    })
    health = merge(local.common, local.databases, local.changes, {
      PROBE_TARGET_URL        = module.echo.uri
      PROBE_TARGET_AUDIENCE   = module.echo.uri
      PROBE_SECOND_TARGET_URL = var.health.second_target_url
      PROBES_AT_ONCE          = tostring(var.health.probes_at_once)
      SHARDS                  = tostring(var.health.shards)
    })
    discovery = merge(local.common, local.namespaces, local.databases, local.topics, {
      LEASE_TTL_MIN_SECONDS     = tostring(var.lease.ttl_min_seconds)
      LEASE_TTL_MAX_SECONDS     = tostring(var.lease.ttl_max_seconds)
      LEASE_TTL_DEFAULT_SECONDS = tostring(var.lease.ttl_default_seconds)
    })
    gc = merge(local.common, local.namespaces, local.main_database, local.topics, local.cluster, local.machines, {
      GC_MIN_AGE_SECONDS      = tostring(var.gc.min_age_seconds)
      GC_SIGHTING_GAP_SECONDS = tostring(var.gc.sighting_gap_seconds)
      GC_MAX_DELETIONS        = tostring(var.gc.max_deletions)
    })
  }

  # Internal means: Pub/Sub and Scheduler of this project. Crawlers, probed targets and people come from elsewhere. gc holds
  # the whole fleet at once: some 480 MiB of 10,000 proxies.
  settings = {
    provision = { memory = "512Mi", timeout = 540, internal = true, max_instances = 10 }
    health    = { memory = "512Mi", timeout = 540, internal = true, max_instances = 10 }
    discovery = { memory = "256Mi", timeout = 60, internal = false, max_instances = 20 }
    gc        = { memory = "1Gi", timeout = 300, internal = false, max_instances = 3 }
    echo      = { memory = "256Mi", timeout = 10, internal = false, max_instances = 10 }
  }

  invokers = {
    provision = { push = google_service_account.caller["push"].member }
    health = {
      push      = google_service_account.caller["push"].member
      scheduler = google_service_account.caller["scheduler"].member
    }
    discovery = { for member in var.crawlers : member => member }
    gc = merge(
      { scheduler = google_service_account.caller["scheduler"].member },
      { for member in var.operators : member => member },
    )
    echo = { health = google_service_account.function["health"].member }
  }

  function = {
    for name, settings in local.settings : name => merge(settings, {
      memory        = try(coalesce(var.functions[name].memory), settings.memory)
      cpu           = try(coalesce(var.functions[name].cpu), "1")
      min_instances = try(coalesce(var.functions[name].min_instances), 0)
      max_instances = try(coalesce(var.functions[name].max_instances), settings.max_instances)
    })
  }

  # What every function is deployed with.
  deployment = {
    project           = var.project_id
    region            = var.region
    bucket            = google_storage_bucket.code.name
    docker_repository = google_artifact_registry_repository.images.id
    build_account     = google_service_account.caller["build"].id
    labels            = local.labels
  }
}

module "echo" {
  source = "./modules/function"

  name        = "${local.prefix}echo"
  entry_point = "echo"
  zip         = "${var.dist_dir}/echo.zip"
  deployment  = local.deployment
  settings    = local.function["echo"]
  account     = google_service_account.function["echo"].email
  environment = {}
  invokers    = local.invokers["echo"]

  depends_on = [google_project_iam_member.build]
}

module "function" {
  source   = "./modules/function"
  for_each = toset(["provision", "health", "discovery", "gc"])

  name        = "${local.prefix}${each.key}"
  entry_point = each.key
  zip         = "${var.dist_dir}/${each.key}.zip"
  deployment  = local.deployment
  settings    = local.function[each.key]
  account     = google_service_account.function[each.key].email
  environment = local.environment[each.key]
  invokers    = local.invokers[each.key]

  # Only health reaches proxies, from addresses that the firewall knows.
  egress_subnetwork = each.key == "health" ? { network = var.network.name, subnetwork = google_compute_subnetwork.health.id } : null

  depends_on = [google_project_iam_member.build]
}
