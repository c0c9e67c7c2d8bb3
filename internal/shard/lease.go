// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	labelRole         = "ringwright.dev/balancer-role"
	roleOwner         = "owner"
	annotationAddress = "ringwright.dev/address"
)

// sightingOf reads a Lease as it was seen at now, false where it is none of a replica or was given up.
func sightingOf(lease *coordinationv1.Lease, now time.Time) (sighting, bool) {
	holder, address := ptr.Deref(lease.Spec.HolderIdentity, ""), lease.Annotations[annotationAddress]
	seconds := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)
	if holder == "" || address == "" || seconds < 1 || lease.Spec.RenewTime == nil {
		return sighting{}, false
	}
	return sighting{
		member: Member{Name: holder, Address: address}, renewal: lease.Spec.RenewTime.Time, at: now,
		duration: time.Duration(seconds) * time.Second,
	}, true
}

// leaseName is the name of a replica's Lease.
func leaseName(member string) string { return "ringwright-balancer-" + member }

// renew writes this replica's Lease, if it has one. What was there before under its name is its own of an earlier life.
func (s *Shards) renew(ctx context.Context) error {
	if s.o.Self.Name == "" {
		return nil
	}
	now := s.o.Clock.Now()
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: s.o.Namespace, Name: leaseName(s.o.Self.Name)}
	err := s.o.Client.Get(ctx, key, lease)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading Lease %s: %w", key, err)
	}
	s.fill(lease, now)
	if err != nil {
		err = s.o.Client.Create(ctx, lease)
	} else {
		err = s.o.Client.Update(ctx, lease)
	}
	if err != nil {
		return fmt.Errorf("renewing Lease %s: %w", key, err)
	}
	s.mu.Lock()
	s.renewed = now // Not a later time: the others may have seen it at once.
	s.mu.Unlock()
	return nil
}

// fill makes a Lease this replica's, renewed at now.
func (s *Shards) fill(lease *coordinationv1.Lease, now time.Time) {
	lease.Namespace, lease.Name = s.o.Namespace, leaseName(s.o.Self.Name)
	metav1.SetMetaDataLabel(&lease.ObjectMeta, labelRole, roleOwner)
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, annotationAddress, s.o.Self.Address)
	lease.Spec.HolderIdentity = ptr.To(s.o.Self.Name)
	lease.Spec.LeaseDurationSeconds = ptr.To(int32((s.o.LeaseDuration + time.Second - 1) / time.Second))
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(now))
	if lease.Spec.AcquireTime == nil {
		lease.Spec.AcquireTime = ptr.To(metav1.NewMicroTime(now))
	}
}

// release deletes this replica's Lease.
func (s *Shards) release() error {
	if s.o.Self.Name == "" {
		return nil
	}
	s.mu.Lock()
	s.renewed = time.Time{}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), s.o.LeaseDuration/3) // That of Start is done.
	defer cancel()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: s.o.Namespace, Name: leaseName(s.o.Self.Name)}}
	if err := client.IgnoreNotFound(s.o.Client.Delete(ctx, lease)); err != nil {
		return fmt.Errorf("giving up Lease %s/%s: %w", lease.Namespace, lease.Name, err)
	}
	return nil
}
