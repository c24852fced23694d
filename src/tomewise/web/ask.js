import { Head, html } from "./parts.js";
export function AskView({ tome, query }) { return html`<${Head} title="AskView">${tome}</${Head}>`; }
export function CompareView({ tome, query }) { return html`<${Head} title="CompareView">${tome}</${Head}>`; }
