package node

import (
	"fmt"
	"strings"

	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
)

// streams compares the settings of the streams with those that the promises
// need: somebody with the right to may have changed them since the start.
func (d *doctor) streams(all []kept) api.Check {
	c := api.Check{Name: "streams", Level: api.OK}
	mend := "start the node again: it makes what is missing, and sets the rest as it must be"
	if d.footing == onOthers {
		mend = "rollcall node init makes what is missing, and sets the rest as it must be"
	}
	var odd []string
	for _, k := range all {
		if k.err != nil {
			return api.Check{Name: c.Name, Level: api.Fail, Found: k.want.Name + ": " + k.err.Error(), Fix: mend}
		}
		odd = append(odd, eventstore.Drift(k.want, k.info.Config)...)
	}
	if len(odd) > 0 {
		return api.Check{
			Name: c.Name, Level: api.Fail, Found: "changed by somebody: " + strings.Join(odd, "; "),
			Fix: mend + "; and see who may change streams",
		}
	}
	c.Found = fmt.Sprintf("all %d have the settings that the promises need", len(all))
	return c
}
