/* recover.h: what storage_open finds on disk, made into a view and a head. Called once, before any thread runs. */
#ifndef VARVE_STORAGE_RECOVER_H
#define VARVE_STORAGE_RECOVER_H

#include "storage/db_internal.h"

/* Manifest → open parts → db->view (without heads). Removes files that no manifest names. */
err recover_parts(struct db *db) __attribute__((warn_unused_result));
/* Log segments → db->registry, db->head, which joins the view. *generation: for the first new segment. */
err recover_log(struct db *db, uint32_t *generation) __attribute__((warn_unused_result));

#endif
