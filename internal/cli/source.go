package cli

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/audit"
	"github.com/rollcall-dev/rollcall/internal/auth"
)

// source says where a command that only reads logs reads them from.
type source struct {
	// export is a file; auditor a name. Neither: a node, or the auditor whose
	// credentials are set.
	export, auditor string
	// tenant that was asked for; empty: all that the source has.
	tenant func() string
}

// flags takes a file as well as an auditor.
func (o *source) flags(c *cobra.Command) {
	c.Flags().StringVar(&o.export, "export", "", "read from this file, which rollcall export wrote: no node and no NATS is needed")
	o.auditorFlag(c)
	c.MarkFlagsMutuallyExclusive("export", "auditor")
}

func (o *source) auditorFlag(c *cobra.Command) {
	c.Flags().StringVar(&o.auditor, "auditor", "", "read from NATS as this auditor, past the nodes (the default with an auditor's credentials)")
	o.tenant = func() string {
		if f := c.Flag("tenant"); f != nil && f.Changed {
			return f.Value.String()
		}
		return ""
	}
}

// reader is whose rights are used to read from NATS; empty: a client's.
func (s *session) reader(o source) string {
	if o.auditor != "" {
		return o.auditor
	}
	name, _ := auth.AuditorOf(s.cfg.NATS.Creds)
	return name
}

// open gives the source; the caller closes it.
func (s *session) open(ctx context.Context, o source) (audit.Source, error) {
	if o.export != "" {
		return openExport(s.path(o.export))
	}
	name := s.reader(o)
	if name == "" {
		client, err := s.connect()
		if err != nil {
			return nil, err
		}
		return &nodeSource{client: client}, nil
	}
	nc, err := api.Dial(s.target(), "rollcall auditor "+name)
	if err != nil {
		return nil, err
	}
	log, err := eventstore.OpenAudit(ctx, nc, name, auth.AuditAPI, "$JS.API")
	if err != nil {
		nc.Close()
		return nil, err
	}
	return &auditorSource{log: log, nodes: api.NewClient(nc, log.Tenant()), done: nc.Close}, nil
}

func openExport(path string) (audit.Source, error) {
	f, err := os.Open(path) //nolint:gosec // the user names it
	if err != nil {
		return nil, exportUnreadable(path, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no file on a disk")
	}
	var x *audit.Export
	if err != nil {
		err = exportUnreadable(path, err)
	} else {
		x, err = audit.OpenExport(f, info.Size(), f.Close)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return x, nil
}

func exportUnreadable(path string, err error) error {
	return domain.Refuse("export-unreadable", "the export "+printable(path)+" cannot be read", err.Error(), "name a file that rollcall export wrote")
}
