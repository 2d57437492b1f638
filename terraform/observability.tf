# Counters come as log lines, since a function has no other way that costs nothing while nothing happens. Alerts say what a
# person should look at, each with its runbook; what mends itself within minutes raises none.

locals {
  # By the counter's name in the code: who counts it, and its labels there.
  counters = {
    lease_granted              = { from = "discovery", labels = [] }
    lease_refused              = { from = "discovery", labels = ["code"] }
    lease_renewed              = { from = "discovery", labels = ["outcome"] }
    lease_released             = { from = "discovery", labels = [] }
    lease_reported             = { from = "discovery", labels = ["outcome"] }
    lease_commit_conflict      = { from = "discovery", labels = [] }
    health_alerts              = { from = "health", labels = ["alert"] }
    health_rounds              = { from = "health", labels = ["result"] }
    health_probes              = { from = "health", labels = ["outcome"] }
    health_verdicts            = { from = "health", labels = ["to", "outcome"] }
    health_endpoints_left      = { from = "health", labels = [] }
    health_verdicts_unwritten  = { from = "health", labels = [] }
    health_unreadable_records  = { from = "health", labels = [] }
    undecodable_messages       = { from = "health", labels = ["topic"] }
    health_message_age_ms      = { from = "health", labels = [] }
    health_probe_ms            = { from = "health", labels = [] }
    provider_calls             = { from = "provision", labels = ["provider", "call", "result"] }
    provision_calls            = { from = "provision", labels = ["result"] }
    provision_message_age_ms   = { from = "provision", labels = [] }
    provision_messages_dropped = { from = "provision", labels = [] }
    gc_deletions               = { from = "gc", labels = ["kind", "result"] }
    gc_findings                = { from = "gc", labels = ["kind", "rule"] }
    gc_frozen                  = { from = "gc", labels = ["reason"] }
    gc_nudges                  = { from = "gc", labels = ["reason"] }
    gc_provider_calls          = { from = "gc", labels = ["provider", "call", "result"] }
    watcher_lists              = { from = "watcher", labels = [] }
    watcher_nudges             = { from = "watcher", labels = ["reason"] }
    watcher_publish_failures   = { from = "watcher", labels = [] }
    watcher_watch_failures     = { from = "watcher", labels = [] }
  }

  # Counted many at a time: their lines are summed up by value.
  weighed = toset([
    "health_probes", "health_endpoints_left", "health_verdicts_unwritten", "health_unreadable_records", "gc_findings",
  ])
  # Of each line the value is what matters: milliseconds, from 1 to about an hour.
  timed  = toset(["health_message_age_ms", "health_probe_ms", "provision_message_age_ms"])
  valued = setunion(local.weighed, local.timed)

  function_logs = { for name in local.functions : name => join(" AND ", [
    "resource.type=\"cloud_run_revision\"",
    "resource.labels.service_name=\"${local.prefix}${name}\"",
  ]) }
  logs = merge(local.function_logs, {
    watcher = join(" AND ", [
      "resource.type=\"k8s_container\"",
      "resource.labels.namespace_name=\"${var.cluster.watcher_namespace}\"",
      "resource.labels.container_name=\"watcher\"",
      "jsonPayload.function=\"watcher\"",
    ])
  })
}

resource "google_logging_metric" "counter" {
  for_each = local.counters

  project     = var.project_id
  name        = "${local.prefix}${each.key}"
  description = "Counted by ${each.value.from}."
  filter      = "${local.logs[each.value.from]} AND jsonPayload.metric=\"${each.key}\""

  value_extractor  = contains(local.valued, each.key) ? "EXTRACT(jsonPayload.value)" : null
  label_extractors = { for label in each.value.labels : label => "EXTRACT(jsonPayload.labels.${label})" }

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = contains(local.valued, each.key) ? "DISTRIBUTION" : "INT64"
    unit        = contains(local.timed, each.key) ? "ms" : "1"

    dynamic "labels" {
      for_each = toset(each.value.labels)
      content {
        key        = labels.value
        value_type = "STRING"
      }
    }
  }

  dynamic "bucket_options" {
    for_each = contains(local.timed, each.key) ? [1] : []
    content {
      exponential_buckets {
        num_finite_buckets = 44
        growth_factor      = 1.4142
        scale              = 1
      }
    }
  }

  depends_on = [google_project_service.main]
}

# Whoever it is that Firestore does not answer says so in the chain of its error.
resource "google_logging_metric" "firestore_errors" {
  project     = var.project_id
  name        = "${local.prefix}firestore_errors"
  description = "Errors of calls of Firestore, in all functions."
  filter = join(" AND ", [
    "resource.type=\"cloud_run_revision\"",
    "resource.labels.service_name=(${join(" OR ", [for name in local.functions : "\"${local.prefix}${name}\""])})",
    "severity>=ERROR",
    "jsonPayload.error:\"Firestore:\"",
  ])

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"
    unit        = "1"
  }

  depends_on = [google_project_service.main]
}

# An instance whose calls of Firestore hang says so before it ends itself.
resource "google_logging_metric" "firestore_stuck" {
  project     = var.project_id
  name        = "${local.prefix}firestore_stuck"
  description = "Instances that ended because their calls of Firestore hung."
  filter = join(" AND ", [
    "resource.type=\"cloud_run_revision\"",
    "resource.labels.service_name=(${join(" OR ", [for name in local.functions : "\"${local.prefix}${name}\""])})",
    "jsonPayload.alert=\"FirestoreStuck\"",
  ])

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"
    unit        = "1"
  }

  depends_on = [google_project_service.main]
}

locals {
  # Filters of Cloud Monitoring.
  counted = merge(
    {
      for name, counter in local.counters : name => join(" AND ", [
        "resource.type = \"${counter.from == "watcher" ? "k8s_container" : "cloud_run_revision"}\"",
        "metric.type = \"logging.googleapis.com/user/${google_logging_metric.counter[name].name}\"",
      ])
    },
    { for name, metric in {
      firestore_errors = google_logging_metric.firestore_errors.name
      firestore_stuck  = google_logging_metric.firestore_stuck.name
      } : name => join(" AND ", [
        "resource.type = \"cloud_run_revision\"",
        "metric.type = \"logging.googleapis.com/user/${metric}\"",
    ]) },
  )
  requests = { for name in local.functions : name => join(" AND ", [
    "resource.type = \"cloud_run_revision\"",
    "resource.labels.service_name = \"${local.prefix}${name}\"",
    "metric.type = \"run.googleapis.com/request_count\"",
  ]) }
  queues = { for kind, subscriptions in {
    main = [for one in local.subscriptions : "${local.prefix}${one.name}"]
    dead = [for one in local.subscriptions : "${local.prefix}${one.topic}-dead"]
    } : kind => join(" AND ", [
      "resource.type = \"pubsub_subscription\"",
      "resource.labels.subscription_id = one_of(${join(", ", [for name in subscriptions : "\"${name}\""])})",
  ]) }

  # Each has a runbook of the same name. `absent_for`: raised when nothing was counted for so long; else when the value was
  # above `above` for `lasting`, in periods of a minute.
  alerts = {
    dead-letters = {
      title    = "Messages could not be delivered"
      severity = "ERROR"
      filter   = "${local.queues["dead"]} AND metric.type = \"pubsub.googleapis.com/subscription/num_undelivered_messages\""
      aligner  = "ALIGN_MAX"
      above    = 0
    }
    queue-age = {
      title    = "Messages wait too long"
      severity = "WARNING"
      filter   = "${local.queues["main"]} AND metric.type = \"pubsub.googleapis.com/subscription/oldest_unacked_message_age\""
      aligner  = "ALIGN_MAX"
      above    = 900
      lasting  = "300s"
    }
    health-silent = {
      title      = "No round of health"
      severity   = "CRITICAL"
      filter     = local.counted["health_rounds"]
      absent_for = "300s"
    }
    prober-blind = {
      title    = "Health sees no probe target"
      severity = "ERROR"
      filter   = "${local.counted["health_alerts"]} AND metric.labels.alert = \"ProberBlind\""
      above    = 0
      lasting  = "120s"
    }
    mass-failure = {
      title    = "Most of the fleet fails at once"
      severity = "ERROR"
      filter   = "${local.counted["health_alerts"]} AND metric.labels.alert = \"MassFailure\""
      above    = 0
    }
    rounds-cut-off = {
      title    = "Rounds of health do not end in their time"
      severity = "WARNING"
      filter   = "${local.counted["health_alerts"]} AND metric.labels.alert = one_of(\"RoundCutOff\", \"RoundsMissed\")"
      above    = 0
      lasting  = "300s"
    }
    gc-frozen = {
      title    = "gc deletes nothing until a person confirms"
      severity = "WARNING"
      filter   = local.counted["gc_frozen"]
      above    = 0
      lasting  = "300s"
    }
    gc-silent = {
      title      = "No run of gc"
      severity   = "ERROR"
      filter     = "${local.requests["gc"]} AND metric.labels.response_code_class = \"2xx\""
      absent_for = "600s"
    }
    watcher-silent = {
      title      = "The watcher is silent"
      severity   = "ERROR"
      filter     = local.counted["watcher_lists"]
      absent_for = "900s"
    }
    watcher-watching = {
      title    = "The watcher cannot see all of its Proxies"
      severity = "ERROR"
      filter   = local.counted["watcher_watch_failures"]
      above    = 0
      lasting  = "600s"
    }
    watcher-publishing = {
      title    = "The watcher cannot publish"
      severity = "ERROR"
      filter   = local.counted["watcher_publish_failures"]
      above    = 0
      lasting  = "300s"
    }
    discovery-errors = {
      title    = "Discovery fails"
      severity = "ERROR"
      filter   = "${local.requests["discovery"]} AND metric.labels.response_code = one_of(\"500\", \"501\", \"502\", \"504\")"
      above    = 0
      lasting  = "120s"
    }
    none-available = {
      title    = "Crawlers get no proxy"
      severity = "WARNING"
      filter   = "${local.counted["lease_refused"]} AND metric.labels.code = \"NoneAvailable\""
      above    = 0
      lasting  = "600s"
    }
    firestore-unavailable = {
      title    = "Firestore does not answer"
      severity = "CRITICAL"
      filter   = local.counted["firestore_errors"]
      above    = 0
      lasting  = "180s"
    }
    firestore-stuck = {
      title    = "Instances end because Firestore hangs"
      severity = "ERROR"
      filter   = local.counted["firestore_stuck"]
      above    = 0
      lasting  = "120s"
    }
    provision-failures = {
      title    = "Provision fails"
      severity = "ERROR"
      filter   = "${local.counted["provision_calls"]} AND metric.labels.result = \"failed\""
      above    = 0
    }
  }
}

resource "google_monitoring_alert_policy" "main" {
  for_each = { for name, alert in local.alerts : name => alert if var.alerts.enabled }

  project               = var.project_id
  display_name          = "${var.installation_id}: ${each.value.title}"
  combiner              = "OR"
  severity              = each.value.severity
  user_labels           = local.labels
  notification_channels = var.alerts.notification_channels

  documentation {
    mime_type = "text/markdown"
    subject   = "${var.installation_id}: ${each.value.title}"
    content   = file("${path.module}/runbooks/${each.key}.md")

    dynamic "links" {
      for_each = var.alerts.runbooks_url == "" ? [] : [1]
      content {
        display_name = "Runbook"
        url          = "${var.alerts.runbooks_url}/${each.key}.md"
      }
    }
  }

  conditions {
    display_name = each.value.title

    dynamic "condition_absent" {
      for_each = can(each.value.absent_for) ? [each.value.absent_for] : []
      content {
        filter   = each.value.filter
        duration = condition_absent.value

        # One series for all instances: each of them may end at any time.
        aggregations {
          alignment_period     = "60s"
          per_series_aligner   = "ALIGN_DELTA"
          cross_series_reducer = "REDUCE_SUM"
        }
      }
    }

    dynamic "condition_threshold" {
      for_each = can(each.value.absent_for) ? [] : [each.value]
      content {
        filter          = condition_threshold.value.filter
        comparison      = "COMPARISON_GT"
        threshold_value = condition_threshold.value.above
        duration        = try(condition_threshold.value.lasting, "0s")

        aggregations {
          alignment_period     = "60s"
          per_series_aligner   = try(condition_threshold.value.aligner, "ALIGN_DELTA")
          cross_series_reducer = can(condition_threshold.value.aligner) ? "REDUCE_MAX" : "REDUCE_SUM"
        }

        trigger {
          count = 1
        }
      }
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }

  lifecycle {
    precondition {
      condition     = length(file("${path.module}/runbooks/${each.key}.md")) <= 8192
      error_message = "Cloud Monitoring takes 8192 characters of documentation."
    }
  }
}

locals {
  # What each chart of the dashboard shows, in the order of reading: what crawlers get, then what it is made of.
  charts = [
    { title = "Leases granted and refused", series = [
      { filter = local.counted["lease_granted"], by = [] },
      { filter = local.counted["lease_refused"], by = ["metric.label.code"] },
    ] },
    { title = "Leases renewed, by outcome", series = [{ filter = local.counted["lease_renewed"], by = ["metric.label.outcome"] }] },
    { title = "Reports of crawlers", series = [{ filter = local.counted["lease_reported"], by = ["metric.label.outcome"] }] },
    { title = "Discovery, by response code", series = [{ filter = local.requests["discovery"], by = ["metric.label.response_code"] }] },
    { title = "Verdicts that changed", series = [{ filter = local.counted["health_verdicts"], by = ["metric.label.to", "metric.label.outcome"] }] },
    { title = "Rounds of health, by result", series = [{ filter = local.counted["health_rounds"], by = ["metric.label.result"] }] },
    { title = "Probes: median and 99 % of milliseconds", series = [
      { filter = local.counted["health_probe_ms"], by = [], percentile = "50" },
      { filter = local.counted["health_probe_ms"], by = [], percentile = "99" },
    ] },
    { title = "Calls of provision, by result", series = [{ filter = local.counted["provision_calls"], by = ["metric.label.result"] }] },
    { title = "Nudges", series = [
      { filter = local.counted["watcher_nudges"], by = ["metric.label.reason"] },
      { filter = local.counted["gc_nudges"], by = ["metric.label.reason"] },
    ] },
    { title = "Deletions of orphans, and freezes", series = [
      { filter = local.counted["gc_deletions"], by = ["metric.label.kind", "metric.label.result"] },
      { filter = local.counted["gc_frozen"], by = ["metric.label.reason"] },
    ] },
    { title = "Age of the oldest message, in seconds", series = [{
      filter  = "${local.queues["main"]} AND metric.type = \"pubsub.googleapis.com/subscription/oldest_unacked_message_age\""
      by      = ["resource.label.subscription_id"]
      aligner = "ALIGN_MAX"
    }] },
    { title = "Messages: milliseconds until they are handled, 99 %", series = [
      { filter = local.counted["provision_message_age_ms"], by = [], percentile = "99" },
      { filter = local.counted["health_message_age_ms"], by = [], percentile = "99" },
    ] },
    { title = "Calls of providers, by result", series = [
      { filter = local.counted["provider_calls"], by = ["metric.label.call", "metric.label.result"] },
      { filter = local.counted["gc_provider_calls"], by = ["metric.label.call", "metric.label.result"] },
    ] },
    { title = "Machines and leftovers as gc finds them, by rule", series = [
      { filter = local.counted["gc_findings"], by = ["metric.label.kind", "metric.label.rule"] },
    ] },
    { title = "Dead letters", series = [{
      filter  = "${local.queues["dead"]} AND metric.type = \"pubsub.googleapis.com/subscription/num_undelivered_messages\""
      by      = ["resource.label.subscription_id"]
      aligner = "ALIGN_MAX"
    }] },
    { title = "Errors of Firestore", series = [{ filter = local.counted["firestore_errors"], by = ["resource.label.service_name"] }] },
  ]
}

resource "google_monitoring_dashboard" "main" {
  project = var.project_id

  dashboard_json = jsonencode({
    displayName = "Egress proxies: ${var.installation_id}"
    labels      = { egress-installation = var.installation_id }
    mosaicLayout = {
      columns = 12
      tiles = [for position, chart in local.charts : {
        xPos   = position % 3 * 4
        yPos   = floor(position / 3) * 4
        width  = 4
        height = 4
        widget = {
          title = chart.title
          xyChart = {
            dataSets = [for one in chart.series : {
              plotType = "LINE"
              timeSeriesQuery = {
                timeSeriesFilter = {
                  filter = one.filter
                  aggregation = {
                    alignmentPeriod    = "60s"
                    perSeriesAligner   = try(one.aligner, "ALIGN_DELTA")
                    crossSeriesReducer = can(one.aligner) ? "REDUCE_MAX" : can(one.percentile) ? "REDUCE_PERCENTILE_${one.percentile}" : "REDUCE_SUM"
                    groupByFields      = one.by
                  }
                }
              }
            }]
          }
        }
      }]
    }
  })

  depends_on = [google_project_service.main]
}
