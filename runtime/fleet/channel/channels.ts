/** Keeps channels in the database. */
import { parseJson } from '#kit/foundation/json-reader.ts'
import type { Database } from '#fleet/state/database.ts'
import { createNamedRows } from '#fleet/state/kept-rows.ts'
import { readText } from '#fleet/state/sqlite.ts'
import { ChannelRecordSchema, MAX_CHANNELS, type ImageChannel } from './rules/channel.ts'

export type Channels = ReturnType<typeof createChannels>

export const createChannels = (database: Database) =>
  createNamedRows<ImageChannel>(database, {
    table: 'channels',
    most: MAX_CHANNELS,
    parse(row) {
      const { data } = ChannelRecordSchema.safeParse(parseJson(readText(row, 'record')))
      return data === undefined ? null : { name: readText(row, 'name'), ...data }
    },
    render(channel) {
      const { name: _, ...record } = channel
      return { record: JSON.stringify(record) }
    },
  })
