//go:build !linux

package ensemble

import "errors"

var errNoMounts = errors.New("ensemble: Config.DiskMB needs Linux")

func ownMounts() error               { return errNoMounts }
func mountDisk(string, int64) error  { return errNoMounts }
func fillDisk(string) error          { return errNoMounts }
func resizeDisk(string, int64) error { return errNoMounts }
