# seqinbox: the version comes from META.json

PG_CONFIG   ?= pg_config

EXTENSION    = seqinbox
DISTVERSION  = $(shell sed -n '/"version":/{s/.*"version": *"\([^"]*\)".*/\1/p;q;}' META.json)
MODULE_big   = seqinbox
OBJS         = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c)))
DATA         = $(wildcard seqinbox--*.sql)
PGFILEDESC   = "seqinbox - transactional inbox"

# as system headers, the server's own give no warnings
PG_CPPFLAGS  = -DSEQINBOX_VERSION='"$(DISTVERSION)"' \
               -isystem $(shell $(PG_CONFIG) --includedir-server)
PG_CFLAGS    = -Wall -Wextra

REGRESS      = $(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql)))
ISOLATION    = $(patsubst test/isolation/specs/%.spec,%,$(sort $(wildcard test/isolation/specs/*.spec)))
ISOLATION_OPTS = --inputdir=test/isolation --outputdir=test/isolation

PGXS        := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

$(OBJS): $(wildcard src/*.h) META.json

include Makefile.dev
