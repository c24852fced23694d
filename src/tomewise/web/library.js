import { Head, html } from "./parts.js";
export function LibraryView({ tome, query }) { return html`<${Head} title="LibraryView">${tome}</${Head}>`; }
export function TomeView({ tome, query }) { return html`<${Head} title="TomeView">${tome}</${Head}>`; }
export function BuildView({ tome, query }) { return html`<${Head} title="BuildView">${tome}</${Head}>`; }
