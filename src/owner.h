/*-------------------------------------------------------------------------
 *
 * owner.h
 *	  Acting as the owner of an inbox's tables.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SEQINBOX_OWNER_H
#define SEQINBOX_OWNER_H

/* what to come back to */
typedef struct Acting
{
	Oid			user;
	int			security;
	int			settings;
} Acting;

extern const char *owner_query(void);
extern void owner_untrusted(int elevel, const char *inbox_name);
extern Oid	owner_for_housekeeping(Oid inbox);
extern void act_as(Oid owner, Acting *acting);
extern void end_settings(const Acting *acting);
extern void act_as_before(const Acting *acting);

#endif							/* SEQINBOX_OWNER_H */
