/** Keeps channels in the database: read from memory, on disk before a change resolves. */
import { parseJson } from '#kit/foundation/json-reader.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Database } from '#fleet/state/database.ts'
import { readText, type Row } from '#fleet/state/sqlite.ts'
import { ChannelRecordSchema, MAX_CHANNELS, type ImageChannel } from './rules/channel.ts'

export type Channels = ReturnType<typeof createChannels>

export function createChannels(database: Database) {
  let kept: ReadonlyMap<string, ImageChannel> = new Map()
  let epoch: number | null = null

  const current = () => {
    const present = database.epoch()
    if (present !== epoch) {
      const rows = database.sql.all(`${SELECT} ORDER BY name`)
      kept = new Map(rows.flatMap(readRow).map((one) => [one.name, one]))
      epoch = present
    }
    return kept
  }

  return {
    /** From memory. */
    list: (): readonly ImageChannel[] => [...current().values()],
    find: (name: string): ImageChannel | null => current().get(name) ?? null,
    /** `change` gets the stored channel in the transaction; null: nothing is stored. */
    async save(
      name: string,
      change: (before: ImageChannel | null) => ImageChannel | null,
    ): Promise<Result<ImageChannel | null, 'too-many'>> {
      const saved = await database.write((sql) => {
        const found = sql.all(`${SELECT} WHERE name = ?`, name)
        const count = Number(sql.get('SELECT count(*) AS n FROM channels')?.['n'])
        if (found.length === 0 && count >= MAX_CHANNELS) return 'too-many'
        const channel = change(found.flatMap(readRow)[0] ?? null)
        if (channel === null) return null
        const { name: _, ...record } = channel
        sql.run(SAVE, name, JSON.stringify(record))
        return channel
      })
      epoch = null
      return saved === 'too-many' ? refuse(saved) : accept(saved)
    },
    /** `isMeant` sees the stored channel in the transaction. False: nothing was removed. */
    async remove(name: string, isMeant: (before: ImageChannel) => boolean): Promise<boolean> {
      const removed = await database.write((sql) => {
        const [before] = sql.all(`${SELECT} WHERE name = ?`, name).flatMap(readRow)
        if (before === undefined || !isMeant(before)) return false
        return sql.run('DELETE FROM channels WHERE name = ?', name) > 0
      })
      epoch = null
      return removed
    },
  }
}

const SELECT = 'SELECT name, record FROM channels'
const SAVE = `INSERT INTO channels (name, record) VALUES (?, ?)
  ON CONFLICT (name) DO UPDATE SET record = excluded.record`

function readRow(row: Row): readonly ImageChannel[] {
  const parsed = ChannelRecordSchema.safeParse(parseJson(readText(row, 'record')))
  return parsed.success ? [{ name: readText(row, 'name'), ...parsed.data }] : []
}
