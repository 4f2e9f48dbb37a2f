/** The texts of the script that uploads files (`static/uploads.js`), for the attribute `data-texts` of its forms. */
import { PAGES } from '../../core/texts/pages/texts.ts'

export const UPLOAD_TEXTS = JSON.stringify(PAGES.frame.uploads)
