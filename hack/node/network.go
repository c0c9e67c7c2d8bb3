// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
)

// connectNode links the host to the network namespace of the process pid, and routes pods and Services to it.
func connectNode(pid int) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = hostLink
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: peerLink, PeerNamespace: netlink.NsPid(pid)}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("creating the link %s: %w", hostLink, err)
	}
	if err := bringUp(hostLink, hostIP+"/30"); err != nil {
		return err
	}
	for _, network := range []string{podNet, serviceNet} {
		if err := addRoute(hostLink, network, nodeIP); err != nil {
			return err
		}
	}
	return nil
}

// checkRoutes reports a route of the host to what is to be one of the node's networks.
func checkRoutes() error {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("listing routes: %w", err)
	}
	for _, r := range routes {
		if taken := overlapping(r.Dst); taken != "" {
			return fmt.Errorf("the node needs %s, and this machine has a route to %s", taken, r.Dst)
		}
	}
	return nil
}

// overlapping returns which of the node's networks has addresses in common with dst, or "". The default route has none.
func overlapping(dst *net.IPNet) string {
	if dst == nil {
		return ""
	}
	if ones, _ := dst.Mask.Size(); ones == 0 {
		return ""
	}
	for _, network := range []string{linkNet, podNet, serviceNet} {
		_, n, err := net.ParseCIDR(network)
		if err == nil && (n.Contains(dst.IP) || dst.Contains(n.IP)) {
			return network
		}
	}
	return ""
}

// disconnectNode removes the link, and its routes with it. No link is no error.
func disconnectNode() error {
	link, err := netlink.LinkByName(hostLink)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil {
		return fmt.Errorf("removing the link %s: %w", hostLink, err)
	}
	return nil
}

// setUpNetwork is connectNode's other half, inside of the node's network namespace.
func setUpNetwork() error {
	peer, err := netlink.LinkByName(peerLink)
	if err == nil {
		err = netlink.LinkSetName(peer, "eth0")
	}
	if err != nil {
		return fmt.Errorf("naming the link: %w", err)
	}
	if err := bringUp("lo", ""); err != nil {
		return err
	}
	if err := bringUp("eth0", nodeIP+"/30"); err != nil {
		return err
	}
	if err := addRoute("eth0", "0.0.0.0/0", hostIP); err != nil {
		return err
	}
	// It is the namespace's own.
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
}

// bringUp gives an address, if there is one, to a link and switches it on.
func bringUp(name, address string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding the link %s: %w", name, err)
	}
	if address != "" {
		addr, err := netlink.ParseAddr(address)
		if err == nil {
			err = netlink.AddrAdd(link, addr)
		}
		if err != nil {
			return fmt.Errorf("giving %s to %s: %w", address, name, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("switching on %s: %w", name, err)
	}
	return nil
}

// addRoute routes a network through a gateway on a link.
func addRoute(name, network, gateway string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding the link %s: %w", name, err)
	}
	_, dst, err := net.ParseCIDR(network)
	if err == nil {
		err = netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: dst, Gw: net.ParseIP(gateway)})
	}
	if err != nil {
		return fmt.Errorf("routing %s to %s: %w", network, gateway, err)
	}
	return nil
}
