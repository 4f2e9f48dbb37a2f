/** Finds out which assets of a release have been built. */
import { billOf, packageListOf } from '#appliance/assets.ts'
import { RELEASES, type AssetGroup, type ReleaseLine } from '#appliance/release.ts'

export interface Collection {
  /** Groups of which nothing is missing. */
  readonly groups: readonly AssetGroup[]
  /** Files that a release of this line must have and that were not built. */
  readonly missing: readonly string[]
}

/**
 * Compares what a release of this line has with what was built.
 *
 * @param built has the names of the files that there are.
 */
export function collectAssets(
  line: ReleaseLine,
  version: string,
  built: ReadonlySet<string>,
): Collection {
  const all = RELEASES[line](version).map((group) => ({
    group,
    missing: [...group.files, ...listsOf(group)].filter((name) => !built.has(name)),
  }))
  return {
    groups: all.flatMap(({ group, missing }) => (missing.length === 0 ? [group] : [])),
    missing: all.flatMap(({ group, missing }) => (group.isSpecified ? missing : [])),
  }
}

/** What describes the files of a group. */
export const listsOf = ({ stem }: AssetGroup): readonly string[] =>
  stem === null ? [] : [billOf(stem), packageListOf(stem)]
