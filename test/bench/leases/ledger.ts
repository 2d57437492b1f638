/** What clients know for certain: who holds which lease, and what was on offer. Judged by the server's times alone. */

/** What a proxy offers: nothing where `host` is empty. */
export interface Offer {
  readonly host: string;
  readonly maxLeases: number;
}

export interface Granted {
  readonly leaseId: string;
  readonly uid: string;
  readonly host: string;
  /** Server milliseconds. */
  readonly grantedAt: number;
  readonly expiresAt: number;
}

export interface Ledger {
  /** A moment to hand to `granted`: the beginning of the call that led to it. */
  moment(): number;
  granted(lease: Granted, since: number): void;
  renewed(leaseId: string, expiresAt: number): void;
  /** To be called before the release is sent: from then on somebody else may have the slot. */
  released(leaseId: string): void;
  /** A write of this offer begins; it is the only one when `changed` says that it is committed. */
  changing(uid: string, offer: Offer): void;
  changed(uid: string): void;
  findings(): { readonly grants: number; readonly overAllocations: number; readonly onWithdrawn: number };
}

/** An offer that held from a moment on, until another moment. */
interface Held extends Offer {
  until: number;
}

export const makeLedger = (offers: readonly (readonly [string, Offer])[]): Ledger => {
  let now = 0;
  const findings = { grants: 0, overAllocations: 0, onWithdrawn: 0 };
  const history = new Map<string, Held[]>(
    offers.map(([uid, offer]) => [uid, [{ ...offer, until: Number.POSITIVE_INFINITY }]]),
  );
  const leases = new Map<string, Map<string, Granted>>();
  const byId = new Map<string, string>();

  const held = (uid: string): Map<string, Granted> => {
    const known = leases.get(uid) ?? new Map<string, Granted>();
    leases.set(uid, known);
    return known;
  };

  return {
    moment: () => (now += 1),
    granted(lease, since) {
      const possible = (history.get(lease.uid) ?? []).filter(({ until }) => until >= since);
      const offered = possible.filter(({ host }) => host === lease.host);
      const others = [...held(lease.uid).values()].filter(
        ({ host, expiresAt, grantedAt }) =>
          host === lease.host && expiresAt > lease.grantedAt && grantedAt <= lease.grantedAt,
      );
      findings.grants += 1;
      if (offered.length === 0) findings.onWithdrawn += 1;
      else if (others.length >= Math.max(...offered.map(({ maxLeases }) => maxLeases))) {
        findings.overAllocations += 1;
      }
      held(lease.uid).set(lease.leaseId, lease);
      byId.set(lease.leaseId, lease.uid);
      for (const other of held(lease.uid).values()) {
        if (other.expiresAt + 60_000 < lease.grantedAt) held(lease.uid).delete(other.leaseId);
      }
    },
    renewed(leaseId, expiresAt) {
      const of = held(byId.get(leaseId) ?? '');
      const lease = of.get(leaseId);
      if (lease) of.set(leaseId, { ...lease, expiresAt });
    },
    released(leaseId) {
      held(byId.get(leaseId) ?? '').delete(leaseId);
      byId.delete(leaseId);
    },
    changing(uid, offer) {
      const known = history.get(uid) ?? [];
      history.set(uid, [...known.slice(-50), { ...offer, until: Number.POSITIVE_INFINITY }]);
    },
    changed(uid) {
      now += 1;
      const known = history.get(uid) ?? [];
      for (const offer of known.slice(0, -1)) offer.until = Math.min(offer.until, now - 1);
    },
    findings: () => ({ ...findings }),
  };
};
