/** Drift: what the last flash wrote to the disk of a machine, against what is assigned to the machine. */

/** The newest flash of a machine that wrote something. */
export interface LastWritten {
  /** False: it failed, so nobody knows what the disk holds. */
  readonly isWhole: boolean
  readonly image: string | null
  readonly ref: string | null
  /** Of the image's bytes. */
  readonly sha256: string | null
  readonly model: string | null
  readonly serial: string | null
  /** ISO time of its end. */
  readonly at: string | null
}

interface Assigned {
  /** Null: no image. */
  readonly ref: string | null
  /** Null: not in the catalog. */
  readonly image: { readonly name: string; readonly sha256: string | null } | null
  /** The selected disk's; null: none selected, or it has none. */
  readonly serial: string | null
}

export interface Drift {
  /** `changed-image`: the catalog's image is another now; `other-disk`: not the selected disk. */
  readonly why: 'other-image' | 'changed-image' | 'other-disk'
  readonly written: LastWritten
}

/** Null: no drift, or unknown. A stick's flash has no ref: its digest or name is compared. */
export function decideDrift(assigned: Assigned, written: LastWritten | null): Drift | null {
  if (written === null || !written.isWhole || assigned.ref === null) return null
  const isOther = areOther(assigned.serial, written.serial)
  const why = isOther ? 'other-disk' : compareImages(assigned, written)
  return why === null ? null : { why, written }
}

const areOther = (one: string | null, other: string | null): boolean =>
  one !== null && other !== null && one !== other

function compareImages({ ref, image }: Assigned, written: LastWritten): Drift['why'] | null {
  const { name, sha256 } = image ?? { name: null, sha256: null }
  if (sha256 !== null && sha256 === written.sha256) return null
  const isOther = areOther(sha256, written.sha256)
  if (written.ref === ref) return isOther ? 'changed-image' : null
  return written.ref !== null || isOther || areOther(name, written.image) ? 'other-image' : null
}
