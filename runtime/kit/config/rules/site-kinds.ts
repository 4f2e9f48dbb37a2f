/** Kinds of settings that say which machines are near each other, and near which caches. */
import { z } from 'zod'
import { isBaseUrl, line, listOf } from './setting-kinds.ts'

/** What a machine may be near to: its address, its network, or one of its labels. */
const nearSite = z.union([
  z.ipv4(),
  z.ipv6(),
  z.cidrv4(),
  z.cidrv6(),
  z.string().regex(/^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$/),
])

/** Each with the networks and labels of the machines that are near it. */
export const siteCaches = listOf(
  line.refine((given) => {
    const [base = '', ...rest] = given.split(' ')
    const sites = rest.join(' ')
    const isSited =
      sites === '' || sites.split(';').every((each) => nearSite.safeParse(each.trim()).success)
    return isBaseUrl(base) && isSited
  }),
  {
    most: 100,
    wants:
      'a list of caches, each with its networks and labels, like http://10.1.0.5:8081 10.1.0.0/24; rack a',
    example: 'http://10.1.0.5:8081 10.1.0.0/24; rack a',
  },
  /[\n,]+/,
)

/** The first one that a machine is in counts. */
export const nearSites = listOf(
  nearSite,
  {
    most: 1000,
    wants: 'a list of networks and labels like 10.1.0.0/24; rack a',
    example: '10.1.0.0/24; rack a',
  },
  /[\n,;]+/,
)
