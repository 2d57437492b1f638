/**
 * Whether a Proxy needs a nudge. A gap is something that the Proxy shows and its `status.observed` does not cover; each gap
 * is forwarded once, and again when its effect has not shown in time. Writes that open no gap cause no message: our own
 * status, our finalizer, a reconnect, a replay, a list with nothing new.
 */

import { FINALIZER, type ProxyRef } from '#shared/domain/proxy.ts';

/** A Proxy, as far as nudging it depends on it. */
export interface ProxyView {
  readonly ref: ProxyRef;
  readonly generation: number;
  readonly labelsHash: string;
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
  /** Who `status` says owns it; absent until somebody does. */
  readonly installation?: string;
  /** Names of the Secrets that it refers to. */
  readonly secrets: readonly string[];
  readonly observed?: {
    readonly generation?: number;
    readonly labelsHash?: string;
    readonly secretVersions?: Readonly<Record<string, string>>;
  };
}

export interface Observation {
  readonly view: ProxyView;
  /** True when the Proxy is no longer in the cluster; `view` is how it was last seen. */
  readonly gone: boolean;
  readonly installation: string;
  /** By name; a Secret that was not read yet, or cannot be, is absent and opens no gap. */
  readonly secretVersions: Readonly<Record<string, string>>;
  /** Names the newest happening to one of its Pods; absent while there is none. */
  readonly machine?: string | undefined;
  /** When each gap was last forwarded, in monotonic milliseconds like every time here. */
  readonly forwarded: ReadonlyMap<string, number>;
  readonly now: number;
}

export type Decision =
  /** Nothing is open, or nothing more can come of it. */
  | { readonly kind: 'settled'; readonly open: readonly string[] }
  /** Everything that is open was forwarded; look again at `until` (ms). */
  | { readonly kind: 'wait'; readonly open: readonly string[]; readonly until: number }
  | { readonly kind: 'nudge'; readonly open: readonly string[]; readonly reason: string };

/** How long the effect of a nudge may take to show in `status.observed`. */
export const EFFECT_WITHIN_MS = 120_000;

interface Gap {
  /** Names what is open, version included: a later change of the same kind is another gap. */
  readonly key: string;
  readonly reason: string;
  /** True where `status` can never show the effect, so that a repetition would have no end. */
  readonly once?: boolean;
}

const generationReason = ({ deleting, observed }: ProxyView): string => {
  if (deleting) return 'Deleting';
  return observed?.generation === undefined ? 'New' : 'SpecChanged';
};

/** What `status.observed` does not cover of the object itself. A deletion raises the generation, so it is among them. */
const objectGaps = (view: ProxyView): readonly Gap[] => {
  const gaps: Gap[] = [];
  const guarded = view.finalizers.includes(FINALIZER);
  // Without our finalizer nobody is waiting for us: the object may vanish before it shows that we have seen this.
  const once = view.deleting && !guarded;
  if (view.observed?.generation !== view.generation) {
    gaps.push({ key: `generation:${view.generation}`, reason: generationReason(view), once });
  }
  if (view.observed?.labelsHash !== view.labelsHash) {
    gaps.push({ key: `labels:${view.labelsHash}`, reason: 'LabelsChanged', once });
  }
  if (!view.deleting && !guarded) gaps.push({ key: 'finalizer', reason: 'FinalizerMissing' });
  // Whoever takes an owner out of a status hands the Proxy over, whatever else that status covers.
  if (view.observed?.generation !== undefined && view.installation === undefined) {
    gaps.push({ key: 'owner', reason: 'NotOwned', once });
  }
  return gaps;
};

const secretGaps = ({ view, secretVersions }: Observation): readonly Gap[] =>
  view.deleting
    ? []
    : view.secrets.flatMap((name) => {
        const version = secretVersions[name];
        return version === undefined || version === view.observed?.secretVersions?.[name]
          ? []
          : [{ key: `secret:${name}:${version}`, reason: 'SecretChanged' }];
      });

/** Its effect shows in the Pod, not in the status: it is forwarded once, and what is lost is gc's. */
const machineGaps = ({ machine }: Observation): readonly Gap[] =>
  machine === undefined ? [] : [{ key: `machine:${machine}`, reason: 'MachineChanged', once: true }];

/** A deletion that was forwarded, or dealt with, is somebody's work already; one that went past the finalizer is not. */
const goneGaps = ({ view, forwarded }: Observation): readonly Gap[] => {
  const handled = view.deleting && objectGaps(view).every(({ key }) => forwarded.has(key));
  return handled ? [] : [{ key: 'gone', reason: 'Gone', once: true }];
};

/** A pass that the object itself asks for reads its Secrets anyway, so that they wait for its outcome. */
const gapsOf = (observation: Observation): readonly Gap[] => {
  const { view, gone, installation } = observation;
  if (view.installation !== undefined && view.installation !== installation) return [];
  if (gone) return goneGaps(observation);
  const gaps = objectGaps(view);
  return [...(gaps.length > 0 ? gaps : secretGaps(observation)), ...machineGaps(observation)];
};

const reasonOf = (gaps: readonly Gap[]): string => {
  const reasons = new Set(gaps.map(({ reason }) => reason));
  // Everything about a new Proxy is new, and about one that goes nothing else matters.
  const whole = ['New', 'Deleting'].find((reason) => reasons.has(reason));
  return whole ?? [...reasons].join(', ');
};

/** The next step for one Proxy. */
export const decide = (observation: Observation): Decision => {
  const gaps = gapsOf(observation);
  const open = gaps.map(({ key }) => key);
  const { forwarded, now } = observation;
  const fresh = gaps.filter(({ key }) => !forwarded.has(key));
  if (fresh.length > 0) return { kind: 'nudge', open, reason: reasonOf(fresh) };
  const repeatable = gaps.filter(({ once }) => !once);
  if (repeatable.length === 0) return { kind: 'settled', open };
  const until = Math.min(...repeatable.map(({ key }) => (forwarded.get(key) ?? 0) + EFFECT_WITHIN_MS));
  return until > now
    ? { kind: 'wait', open, until }
    : { kind: 'nudge', open, reason: `${reasonOf(repeatable)} (no effect yet)` };
};
