//go:build !unix

package natsd

import (
	"errors"
	"os"
)

// Without flock a crashed process would leave its lock behind, or two nodes
// would share a directory; neither is safe.
func lockFile(*os.File) error { return errors.ErrUnsupported }
