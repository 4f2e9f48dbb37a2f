/** The manifest of a backup: its files, their pieces and digests. */
import { z } from 'zod'
import { isBackupId } from './backup.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

const PieceSchema = z.object({
  name: z.string().regex(/^[a-z][a-z0-9.-]{0,63}$/),
  bytes: z
    .int()
    .min(0)
    .max(2 ** 31),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})
const FileSchema = PieceSchema.extend({
  bytes: z.int().min(0),
  pieces: z.array(PieceSchema).max(1_000_000),
})
const ManifestSchema = z.object({
  version: z.literal(1),
  backup_id: z.string().refine(isBackupId),
  created_at: z.string().max(40),
  release: z.string().max(64),
  line: z.string().max(64),
  trigger: z.string().max(64),
  machines: z.int().min(0),
  /** Grows with each backup of the storage, whatever the clock says. */
  number: z.int().min(1),
  files: z.array(FileSchema).max(16),
})

export type BackupFile = z.infer<typeof FileSchema>
export type BackupManifest = z.infer<typeof ManifestSchema>

export function parseManifest(text: string, id: string): Result<BackupManifest, 'no-manifest'> {
  const parsed = ManifestSchema.safeParse(parseJson(text))
  return parsed.success && parsed.data.backup_id === id
    ? accept(parsed.data)
    : refuse('no-manifest')
}

export const renderManifest = (manifest: BackupManifest): string =>
  `${JSON.stringify(manifest, null, 2)}\n`
