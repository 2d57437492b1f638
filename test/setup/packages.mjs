/*
 * Whether what npm installed is what the lockfile says. By content: a checkout gives an unchanged lockfile a new date.
 * Plain JavaScript; its types are in packages.d.mts.
 */

/** @typedef {{ readonly id: string, readonly optional: boolean }} Package */

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
const isRecord = (value) => typeof value === 'object' && value !== null;

/**
 * The packages of a lockfile's text by their folders, without the project itself.
 *
 * @param {string} text
 */
const packagesOf = (text) => {
  const lock = /** @type {unknown} */ (JSON.parse(text));
  /** @type {Map<string, Package>} */
  const packages = new Map();
  const entries = isRecord(lock) && isRecord(lock['packages']) ? Object.entries(lock['packages']) : [];
  for (const [folder, entry] of entries) {
    if (folder === '' || !isRecord(entry)) continue;
    const id = `${String(entry['version'])} ${String(entry['integrity'])}`;
    packages.set(folder, { id, optional: entry['optional'] === true });
  }
  return packages;
};

/** @type {typeof import('./packages.mjs').samePackages} */
export const samePackages = (lockfile, installed) => {
  try {
    const want = packagesOf(lockfile);
    const have = packagesOf(installed);
    // Optional ones are for other platforms too.
    const lacking = [...want].some(([folder, { id, optional }]) =>
      have.has(folder) ? have.get(folder)?.id !== id : !optional,
    );
    return !lacking && [...have.keys()].every((folder) => want.has(folder));
  } catch {
    return false;
  }
};
