/*
 * handlers.h: the functions that the route table names. Each fills x->out.
 */
#ifndef VARVE_SERVER_HANDLERS_H
#define VARVE_SERVER_HANDLERS_H

#include "server/exchange.h"
#include "server/server.h"

/* h_write.c: on the loop */
void h_remote_write(struct server *s, struct exchange *x);
void h_import_text(struct server *s, struct exchange *x);
void h_import_json(struct server *s, struct exchange *x);

/* h_query.c: on a query worker */
void h_query_instant(struct server *s, struct exchange *x);
void h_query_range(struct server *s, struct exchange *x);
void h_query_exemplars(struct server *s, struct exchange *x);
void h_query_format(struct server *s, struct exchange *x);
void h_query_parse(struct server *s, struct exchange *x);

/* h_meta.c: on a query worker */
void h_meta_series(struct server *s, struct exchange *x);
void h_meta_series_count(struct server *s, struct exchange *x);
void h_meta_labels(struct server *s, struct exchange *x);
void h_meta_label_values(struct server *s, struct exchange *x);
void h_meta_metadata(struct server *s, struct exchange *x);

/* h_federate.c: on a query worker */
void h_federate(struct server *s, struct exchange *x);

/* h_tsdb.c: on a query worker */
void h_tsdb_status(struct server *s, struct exchange *x);

/* h_read.c: on a remote read worker */
void h_remote_read(struct server *s, struct exchange *x);

/* h_export.c: on an export worker */
void h_export_samples(struct server *s, struct exchange *x);
void h_export_csv(struct server *s, struct exchange *x);

/* h_status.c: on the loop, cheap */
void h_status_ready(struct server *s, struct exchange *x);
void h_status_healthy(struct server *s, struct exchange *x);
void h_status_health(struct server *s, struct exchange *x);
void h_status_metrics(struct server *s, struct exchange *x);
void h_status_buildinfo(struct server *s, struct exchange *x);
void h_status_reload(struct server *s, struct exchange *x);
void h_status_quit(struct server *s, struct exchange *x);

/* h_info.c: on the loop, cheap */
void h_status_config(struct server *s, struct exchange *x);
void h_status_flags(struct server *s, struct exchange *x);
void h_status_runtimeinfo(struct server *s, struct exchange *x);
void h_status_walreplay(struct server *s, struct exchange *x);

/* h_none.c: on the loop: well-formed answers about what there is not */
void h_none_rules(struct server *s, struct exchange *x);
void h_none_alerts(struct server *s, struct exchange *x);
void h_none_alertmanagers(struct server *s, struct exchange *x);
void h_none_targets(struct server *s, struct exchange *x);
void h_none_target_metadata(struct server *s, struct exchange *x);
void h_none_scrape_pools(struct server *s, struct exchange *x);
void h_none_notifications(struct server *s, struct exchange *x);

/* h_storage.c: on a query worker */
void h_storage_status(struct server *s, struct exchange *x);

/* h_top.c: on a query worker */
void h_top_queries(struct server *s, struct exchange *x);
void h_top_metric_names(struct server *s, struct exchange *x);
void h_top_metric_names_reset(struct server *s, struct exchange *x);

/* h_active.c: on the loop */
void h_active_queries(struct server *s, struct exchange *x);
void h_active_cancel(struct server *s, struct exchange *x);

/* h_page.c: on the loop */
void h_page_index(struct server *s, struct exchange *x);
void h_page_asset(struct server *s, struct exchange *x);

/* h_admin.c: on a slow worker */
void h_admin_delete_series(struct server *s, struct exchange *x);
void h_admin_clean_tombstones(struct server *s, struct exchange *x);
void h_admin_snapshot(struct server *s, struct exchange *x);
void h_admin_snapshot_create(struct server *s, struct exchange *x);
void h_admin_snapshot_list(struct server *s, struct exchange *x);
void h_admin_snapshot_delete(struct server *s, struct exchange *x);
void h_admin_snapshot_delete_all(struct server *s, struct exchange *x);
void h_admin_force_flush(struct server *s, struct exchange *x);
void h_admin_force_merge(struct server *s, struct exchange *x);
void h_admin_forget_results(struct server *s, struct exchange *x);

#endif
