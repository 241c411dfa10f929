package ensemble

import "time"

// Slow delays each piece of at most 32 KiB by d, in both directions. The next piece is read only
// when the previous one has passed, so the bandwidth is low, too. Slow(0) ends it; Heal does not.
func (p *Proxy) Slow(d time.Duration) { p.delay.Store(int64(d)) }

// Slow delays all links between servers; see [Proxy.Slow]. It needs Config.Links.
func (e *Ensemble) Slow(d time.Duration) error {
	if e.links == nil {
		return errNoLinks
	}
	e.links.each(func(p *Proxy) { p.Slow(d) })
	return nil
}

// delayedCopy waits for the time that a piece takes on a slow link. It returns false if the pair is
// reset meanwhile.
func (c *proxiedConn) delayedCopy() bool {
	d := time.Duration(c.proxy.delay.Load())
	return d <= 0 || c.pause(d)
}
