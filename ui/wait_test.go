package ui_test

import "time"

const (
	wait = 20 * time.Second
	tick = 10 * time.Millisecond
)
