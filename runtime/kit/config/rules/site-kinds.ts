/** Kinds of settings that say which machines are near each other. */
import { listOf, nearSite } from './setting-kinds.ts'

/** Networks and labels of machines; the first one that a machine is in counts. */
export const nearSites = listOf(
  nearSite,
  {
    most: 1000,
    wants: 'a list of networks and labels like 10.1.0.0/24; rack a',
    example: '10.1.0.0/24; rack a',
  },
  /[\n,;]+/,
)
