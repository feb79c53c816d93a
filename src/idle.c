/*-------------------------------------------------------------------------
 *
 * idle.c
 *	  Limits how long a transaction with a claim may be idle, so that a
 *	  consumer that hangs cannot hold a claim for ever.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/proc.h"

#include "compat.h"
#include "idle.h"

int			idle_timeout;

/*
 * Sets idle_in_transaction_session_timeout for the rest of the transaction,
 * unless it is stricter already.
 */
void
idle_limit(void)
{
	char		value[16];

	if (idle_timeout == 0)
		return;
	if (IdleInTransactionSessionTimeout > 0 &&
		IdleInTransactionSessionTimeout <= idle_timeout)
		return;

	snprintf(value, sizeof(value), "%d", idle_timeout);
	(void) set_config_option("idle_in_transaction_session_timeout", value,
							 PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_LOCAL, true, 0, false);
}
