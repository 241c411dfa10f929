package ensemble

import "time"

// Slow makes the link slow and thin until it is called with 0: each piece of at most 32 KiB is d late in
// either direction, and the next one is taken up only then. Heal does not end it.
func (p *Proxy) Slow(d time.Duration) { p.delay.Store(int64(d)) }

// Slow makes all links between servers slow; see [Proxy.Slow]. It needs Config.Links.
func (e *Ensemble) Slow(d time.Duration) error {
	if e.links == nil {
		return errNoLinks
	}
	e.links.each(func(p *Proxy) { p.Slow(d) })
	return nil
}

// delayedCopy is the time that a piece takes on a slow link. It returns false when the pair was reset meanwhile.
func (c *proxiedConn) delayedCopy() bool {
	d := time.Duration(c.proxy.delay.Load())
	return d <= 0 || c.pause(d)
}
