import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseZpoolStatus } from '#engine/disk/rules/sightings.ts'

const test = suite('zpool')

test('all devices of all pools, spares, logs and caches too', () => {
  const text = `  pool: tank
 state: ONLINE
  scan: scrub repaired 0B in 00:00:01 with 0 errors
config:

\tNAME             STATE     READ WRITE CKSUM
\ttank             ONLINE       0     0     0
\t  mirror-0       ONLINE       0     0     0
\t    /dev/sda1    ONLINE       0     0     0
\t    /dev/sdb1    FAULTED      0     0     0  too many errors
\tlogs
\t  /dev/nvme0n1p4 ONLINE       0     0     0
\tspares
\t  /dev/sdz1      AVAIL

errors: No known data errors

  pool: my pool
config:

\tmy pool      ONLINE       0     0     0
\t  /var/disk  ONLINE       0     0     0
\t  /dev/sdq   ONLINE       0     0     0
`
  assert.equal(
    parseZpoolStatus(text).map(({ pool, path }) => `${pool} ${path}`),
    [
      'tank /dev/sda1',
      'tank /dev/sdb1',
      'tank /dev/nvme0n1p4',
      'tank /dev/sdz1',
      'my pool /dev/sdq',
    ],
  )
})

test('nothing, and anything', () => {
  assert.equal(parseZpoolStatus('no pools available\n'), [])
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => void parseZpoolStatus(text)))
})

test.run()
