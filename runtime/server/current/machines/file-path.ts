/** Where names and labels from a file are taken. */
import { MACHINES_PATH } from '#server/pages/machines/machines-list.ts'

export const MACHINE_FILE_PATH = `${MACHINES_PATH}/file`
export const APPLY_PATH = `${MACHINE_FILE_PATH}/apply`
