/** Plans and results in the words of a person who reads them. */

import type { ProxyRef } from '#shared/domain/proxy.ts';

import { digestOf } from './digest.ts';
import type { Freeze, Plan } from './decide.ts';
import type { NudgeReason } from './nudges.ts';
import { identityOf, type ProxySummary } from './observation.ts';
import { RULE_TEXT, type Judgement } from './orphans.ts';
import type { Removal } from './remove.ts';

/** `kind` says of what the id is: of a machine, or of what one left behind. */
const identity = (judgement: Judgement) => {
  const { kind, zone, name, id, uid } = identityOf(judgement);
  return {
    kind,
    provider: judgement.provider,
    zone,
    name,
    ...(kind === 'machine' ? { instanceId: id } : { id }),
    ...(uid === undefined ? {} : { uid }),
  };
};

const judged = (judgement: Judgement) => ({
  ...identity(judgement),
  rule: judgement.rule,
  explanation: RULE_TEXT[judgement.rule],
});

const NOT_LOOKED_AT =
  'not looked at in this run: boot disks and the like are listed once an hour, while one is being watched, for ten minutes ' +
  'after machines were deleted, and whenever a plan is printed or confirmed';

/** What a person has to know of a Proxy that nobody looks after here. */
const otherReport = ({ ref, owner }: ProxySummary) => ({
  ...ref,
  rule: 'OtherInstallation',
  owner,
  explanation:
    'left alone: its status names another installation; if that one does not look after it any more, ' +
    'take status.installation out, and it is ours',
});

/** Its machines are kept, since nobody may say that its Proxy is gone. */
const strandedReport = (ref: ProxyRef) => ({
  ...ref,
  rule: 'NamespaceNotOurs',
  explanation:
    'kept with its machines: its namespace is not among PROXY_NAMESPACES; put it back until its Proxies are gone',
});

const tally = (names: readonly string[]): Readonly<Record<string, number>> =>
  Object.fromEntries([...Map.groupBy(names, (name) => name)].map(([name, all]) => [name, all.length]));

/** The whole plan as JSON: the answer to a dry run. `digest` is what `confirm` takes. */
export const planReport = (installation: string, plan: Plan) => ({
  installation,
  dryRun: true,
  digest: digestOf(installation, plan.deletions),
  frozen: plan.frozen,
  doubts: plan.doubts,
  deletions: plan.deletions.map(identity),
  machines: plan.judgements.map(judged),
  leftovers: plan.leftovers?.map(judged) ?? NOT_LOOKED_AT,
  proxies: plan.others.map(otherReport),
  records: plan.stranded.map(strandedReport),
  nudges: plan.nudges.map(({ ref, reason }) => ({ ...ref, reason })),
  sightings: { add: plan.sightings.add.length, remove: plan.sightings.remove.length },
  sweep: plan.sweep.map(({ uid }) => uid),
});

/** What a run did about its deletions, and why not more. */
export type Deletions =
  | { readonly kind: 'none' }
  | { readonly kind: 'frozen'; readonly why: readonly Freeze[] }
  | { readonly kind: 'lockHeld' }
  | { readonly kind: 'done'; readonly removals: readonly Removal[] };

export interface Run {
  readonly installation: string;
  readonly plan: Plan;
  readonly deletions: Deletions;
  readonly nudged: readonly NudgeReason[];
  readonly swept: readonly string[];
  /** Steps that failed, in words; their errors are in the log. */
  readonly failures: readonly string[];
}

const removalReport = ({ outcome, ...judgement }: Removal) => ({
  ...identity(judgement),
  outcome: outcome.kind === 'kept' ? outcome.why : outcome.kind,
});

/** The answer to a run: counts, and everything that was to go. */
export const runReport = ({ installation, plan, deletions, nudged, swept, failures }: Run) => ({
  installation,
  machines: tally(plan.judgements.map(({ rule }) => rule)),
  leftovers: plan.leftovers ? tally(plan.leftovers.map(({ rule }) => rule)) : NOT_LOOKED_AT,
  nudges: tally(nudged),
  ...(plan.others.length > 0 ? { ofOtherInstallations: plan.others.length } : {}),
  deletions: deletions.kind === 'done' ? deletions.removals.map(removalReport) : [],
  ...(deletions.kind === 'lockHeld' ? { steppedAside: 'another run is deleting machines' } : {}),
  ...(deletions.kind === 'frozen'
    ? {
        frozen: deletions.why,
        digest: digestOf(installation, plan.deletions),
        help: 'Nothing was deleted. Read the plan with ?dryRun=true; release exactly that plan with ?confirm=<digest>.',
      }
    : {}),
  ...(plan.stranded.length > 0 ? { inForeignNamespaces: plan.stranded.length } : {}),
  swept: swept.length,
  doubts: plan.doubts,
  failures,
});
