/**
 * True when the text of node_modules/.package-lock.json has every package of the lockfile's text in its version, and no
 * other; false also when one of them is no JSON.
 */
export function samePackages(lockfile: string, installed: string): boolean;
