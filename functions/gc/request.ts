/** What a caller may ask for: a run, a look at its plan, or the release of a plan that was looked at. */

export type Mode =
  | { readonly kind: 'run' }
  | { readonly kind: 'dryRun' }
  | { readonly kind: 'confirm'; readonly digest: string };

export type ParsedMode = { readonly mode: Mode } | { readonly refused: string };

const DIGEST = /^[0-9a-f]{64}$/;

/** Reads the query. A parameter that is not understood is refused: it may have been meant to hold a run back. */
export const parseMode = (query: URLSearchParams): ParsedMode => {
  const stranger = [...query.keys()].find((key) => key !== 'dryRun' && key !== 'confirm');
  if (stranger !== undefined)
    return { refused: `unknown parameter ${JSON.stringify(stranger)}: there are dryRun and confirm` };
  const [dryRun, ...moreDryRuns] = query.getAll('dryRun');
  const [digest, ...moreDigests] = query.getAll('confirm');
  if (moreDryRuns.length + moreDigests.length > 0) return { refused: 'a parameter is given twice' };
  if (dryRun !== undefined && dryRun !== 'true' && dryRun !== 'false')
    return { refused: 'dryRun must be true or false' };
  if (digest !== undefined && !DIGEST.test(digest))
    return { refused: 'confirm must be the digest of a printed plan: 64 hex digits' };
  if (dryRun === 'true' && digest !== undefined) return { refused: 'dryRun and confirm exclude each other' };
  if (dryRun === 'true') return { mode: { kind: 'dryRun' } };
  return { mode: digest === undefined ? { kind: 'run' } : { kind: 'confirm', digest } };
};
