# seqinbox: name and version come from META.json
EXTENSION    = seqinbox
DISTVERSION  = $(shell sed -n '/"version":/{s/.*"version": *"\([^"]*\)".*/\1/p;q;}' META.json)
MODULE_big   = seqinbox
OBJS         = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c)))
DATA         = $(wildcard seqinbox--*.sql)
PGFILEDESC   = "seqinbox - transactional inbox"

PG_CPPFLAGS  = -DSEQINBOX_VERSION='"$(DISTVERSION)"'
PG_CFLAGS    = -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare

REGRESS      = $(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql)))
ISOLATION    = $(patsubst test/isolation/specs/%.spec,%,$(sort $(wildcard test/isolation/specs/*.spec)))
ISOLATION_OPTS = --inputdir=test/isolation --outputdir=test/isolation

PG_CONFIG   ?= pg_config
PGXS        := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

$(OBJS): $(wildcard src/*.h) META.json
