/** `flasher inspect image`. */
import { createImages } from '../../../services/image/images.ts'
import { createShell } from '../../../services/host/shell.ts'
import { untilAborted } from '../../../services/host/watch.ts'
import { renderRecord } from '../../../terminal/text/table.ts'
import { SUCCESS } from '../rules/exit-codes.ts'
import { renderImageFields } from '../rules/list-tables.ts'
import type { Session } from './session.ts'

export async function inspectImage({
  given,
  environment,
  json,
  document,
}: Session): Promise<number> {
  const [path = ''] = given.positionals
  const { inspect } = createImages({ shell: createShell({ env: environment.env }) })
  const image = await untilAborted(environment.signal, inspect(path))
  if (json) document({ image })
  else environment.stdout.write(renderRecord(renderImageFields(image, given.switches.has('bytes'))))
  return SUCCESS
}
