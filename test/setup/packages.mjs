/*
 * Whether what npm installed is what the lockfile says. By content: a checkout gives an unchanged lockfile a new date.
 * Plain JavaScript; its types are in packages.d.mts.
 */

/** @typedef {import('./packages.mjs').Platform} Platform */
/** @typedef {{ readonly id: string, readonly needed: boolean }} Package */

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
const isRecord = (value) => typeof value === 'object' && value !== null;

/**
 * Optional packages without a platform belong to another optional one; those for this platform are native parts, which
 * npm leaves out without a word when its Node is too old for them.
 *
 * @param {Record<string, unknown>} entry
 * @param {Platform} platform
 */
const isNeeded = (entry, platform) => {
  if (entry['optional'] !== true) return true;
  /** @param {keyof Platform} key */
  const fits = (key) => {
    const allowed = entry[key];
    return Array.isArray(allowed) ? allowed.includes(platform[key]) : key === 'libc';
  };
  return fits('os') && fits('cpu') && fits('libc');
};

/**
 * The packages of a lockfile's text by their folders, without the project itself.
 *
 * @param {string} text
 * @param {Platform} platform
 */
const packagesOf = (text, platform) => {
  const lock = /** @type {unknown} */ (JSON.parse(text));
  /** @type {Map<string, Package>} */
  const packages = new Map();
  const entries = isRecord(lock) && isRecord(lock['packages']) ? Object.entries(lock['packages']) : [];
  for (const [folder, entry] of entries) {
    if (folder === '' || !isRecord(entry)) continue;
    const id = `${String(entry['version'])} ${String(entry['integrity'])}`;
    packages.set(folder, { id, needed: isNeeded(entry, platform) });
  }
  return packages;
};

/** @type {typeof import('./packages.mjs').samePackages} */
export const samePackages = (lockfile, installed, platform) => {
  try {
    const want = packagesOf(lockfile, platform);
    const have = packagesOf(installed, platform);
    const lacking = [...want].some(([folder, { id, needed }]) =>
      have.has(folder) ? have.get(folder)?.id !== id : needed,
    );
    return !lacking && [...have.keys()].every((folder) => want.has(folder));
  } catch {
    return false;
  }
};
