/** Gathers what machines load by TFTP: `tftp.ts --out DIR NAME=FILE…`. */
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { TFTP_FOLDER } from '#appliance/contract.ts'
import { layFile, makePlace } from '#build/app/lay.ts'

const { values, positionals } = parseArgs({
  options: { out: { type: 'string', default: '' } },
  allowPositionals: true,
})
for (const pair of positionals) {
  const [name = '', from = ''] = pair.split('=')
  await layFile(from, await makePlace(values.out, join(TFTP_FOLDER, name)))
}
