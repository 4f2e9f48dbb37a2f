/** Drift: what the last flash wrote to the disk of a machine, against what is assigned to the machine. */

/** What is known of the content of a machine's disks: the newest flash of it that wrote something. */
export interface LastWritten {
  /** Whether that flash succeeded; otherwise nobody knows what the disk holds. */
  readonly isWhole: boolean
  readonly image: string | null
  readonly ref: string | null
  /** The digest of the image's bytes. */
  readonly sha256: string | null
  /** The disk: its model, and its serial number. */
  readonly model: string | null
  readonly serial: string | null
  /** ISO time of its end. */
  readonly at: string | null
}

/** What is assigned. */
interface Assigned {
  /** Null: no image. */
  readonly ref: string | null
  /** The image in the catalog; null: it is not there. */
  readonly image: { readonly name: string; readonly sha256: string | null } | null
  /** The serial number of the selected disk; null: none is selected, or it has none. */
  readonly serial: string | null
}

export interface Drift {
  /**
   * `other-image`: the disk holds another image; `changed-image`: the image of the catalog has changed
   * since; `other-disk`: the last flash wrote another disk than the one that is selected.
   */
  readonly why: 'other-image' | 'changed-image' | 'other-disk'
  readonly written: LastWritten
}

/**
 * Decides whether a machine has drifted from what is assigned to it; null: it has not, or nobody knows. A
 * flash from a stick names no image of the catalog: its digest or its name says whether it is the same.
 */
export function decideDrift(assigned: Assigned, written: LastWritten | null): Drift | null {
  if (written === null || !written.isWhole || assigned.ref === null) return null
  const isOther = areOther(assigned.serial, written.serial)
  const why = isOther ? 'other-disk' : compareImages(assigned, written)
  return why === null ? null : { why, written }
}

/** Both are known, and differ. */
const areOther = (one: string | null, other: string | null): boolean =>
  one !== null && other !== null && one !== other

function compareImages({ ref, image }: Assigned, written: LastWritten): Drift['why'] | null {
  const { name, sha256 } = image ?? { name: null, sha256: null }
  if (sha256 !== null && sha256 === written.sha256) return null
  const isOther = areOther(sha256, written.sha256)
  if (written.ref === ref) return isOther ? 'changed-image' : null
  return written.ref !== null || isOther || areOther(name, written.image) ? 'other-image' : null
}
